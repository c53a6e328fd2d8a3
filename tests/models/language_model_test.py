import json
import math
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence

import numpy
import pytest
import torch
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.common import Lazy, Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import ModelTestCase
from allennlp.common.util import prepare_environment
from allennlp.data import Batch, DatasetReader, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.models import Model, load_archive
from allennlp.nn.parallel import DdpAccelerator, TorchDdpAccelerator
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from elmo_scratch.data import SentencesReader
from elmo_scratch.models import LanguageModel, language_model
from elmo_scratch.modules import BiLm, OutputSoftmax
from tests import FIXTURES_ROOT
from tests.metrics.workers import run_in_two_workers
from tests.tiny_training import CONFIGS, EXT_VARS, logging_as_before, params_on_fixtures, train

NEWS = FIXTURES_ROOT / "news" / "dev.csv"
BILM = {"token_encoder": {"type": "word", "dim": 7}, "cell_size": 11}


def model_for(vocab: Vocabulary, **settings: Any) -> LanguageModel:
    params = {"type": "elmo_scratch_bilm", "bilm": BILM, **settings}
    model = Model.from_params(Params(deepcopy(params)), vocab=vocab)
    assert isinstance(model, LanguageModel)
    return model


def instances_of(*sentences: str) -> List[Instance]:
    reader = SentencesReader()
    instances = []
    for sentence in sentences:
        instances.append(reader.text_to_instance([Token(word) for word in sentence.split()]))
        reader.apply_token_indexers(instances[-1])
    return instances


def words_of(instance: Instance) -> List[str]:
    sentence = instance["sentence"]
    assert isinstance(sentence, TextField)
    return [str(token) for token in sentence.tokens]


def batch_of(instances: List[Instance], vocab: Vocabulary) -> Dict[str, Any]:
    batch = Batch(instances)
    batch.index_instances(vocab)
    return batch.as_tensor_dict()


def share_one_distribution(model: LanguageModel, probabilities: torch.Tensor) -> None:
    """Makes the model predict the same at every place."""
    with torch.no_grad():
        model.get_parameter("softmax.weight").zero_()
        model.get_parameter("softmax.bias").copy_(probabilities.log())


def test_an_even_guess_has_the_size_of_the_vocabulary_as_its_perplexity() -> None:
    instances = instances_of("a b c d e", "a b")
    vocab = Vocabulary.from_instances(instances)
    model = model_for(vocab)
    share_one_distribution(model, torch.full((9,), 1 / 9))  # a to e, <S>, </S>, padding, unknown
    loss = model(**batch_of(instances, vocab))["loss"]
    assert loss.item() == pytest.approx(math.log(9), abs=1e-6)
    metrics = model.get_metrics()
    assert metrics["perplexity"] == pytest.approx(9, abs=1e-5)
    assert metrics["perplexity_left_to_right"] == pytest.approx(9, abs=1e-5)
    assert metrics["perplexity_right_to_left"] == pytest.approx(9, abs=1e-5)


def test_one_direction_predicts_the_words_and_the_end_the_other_the_words_and_the_beginning() -> (
    None
):
    instances = instances_of("a b a c b", "c a", "b")
    vocab = Vocabulary.from_instances(instances)
    model = model_for(vocab)
    probabilities = torch.full((7,), 1 / 20)
    probabilities[vocab.get_token_index("<S>")] = 1 / 4
    probabilities[vocab.get_token_index("</S>")] = 1 / 2
    share_one_distribution(model, probabilities)
    model(**batch_of(instances, vocab))
    metrics = model.get_metrics(reset=True)
    # 8 words of probability 1/20 and 3 boundaries, 11 targets in both directions.
    left_to_right = (8 * math.log(20) + 3 * math.log(2)) / 11
    right_to_left = (8 * math.log(20) + 3 * math.log(4)) / 11
    assert metrics["loss_left_to_right"] == pytest.approx(left_to_right, abs=1e-6)
    assert metrics["loss_right_to_left"] == pytest.approx(right_to_left, abs=1e-6)
    assert metrics["perplexity"] == pytest.approx(math.exp((left_to_right + right_to_left) / 2))


def test_a_sentence_of_one_word_is_predicted_from_its_boundaries() -> None:
    instances = instances_of("a")
    vocab = Vocabulary.from_instances(instances)
    model = model_for(vocab)
    model(**batch_of(instances, vocab))
    # Targets: "a" and "</S>" left to right, "<S>" and "a" right to left.
    assert numpy.array(model.get_metrics(reset=True)["confusion"]).sum(axis=1).tolist() == [2, 2]


@pytest.mark.parametrize(
    "softmax, warns",
    [
        ({"type": "full"}, False),
        ({"type": "adaptive", "div_value": 2.0}, True),
        ({"type": "sampled", "num_samples": 3}, True),
    ],
)
def test_softmaxes_that_want_frequent_words_first_are_told_where_they_are_not(
    softmax: Dict[str, Any], warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    instances = instances_of("a b c d e f g h")
    late = Vocabulary.from_instances(instances)
    early = Vocabulary(tokens_to_add={"tokens": ["<S>", "</S>", *"abcdefgh"]})
    model_for(early, softmax=softmax)
    assert "comes late" not in caplog.text
    model_for(late, softmax=softmax)
    assert ("comes late in the vocabulary" in caplog.text) == warns


def test_a_word_weighs_the_same_whatever_other_workers_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    instances = instances_of("a")
    vocab = Vocabulary.from_instances(instances)
    model = model_for(vocab).eval()
    batch = batch_of(instances, vocab)
    alone = model(**batch)["loss"]
    # Of eight workers the others have no words any more, and their gradients are averaged with it.
    monkeypatch.setattr(language_model, "mean_over_workers", lambda number: number / 8)
    assert model(**batch)["loss"].item() == pytest.approx(8 * alone.item())


def check_what_is_left_to_the_softmax(rank: int) -> None:
    vocab = Vocabulary.from_instances(instances_of("a b c"))

    def left_by(softmax: Dict[str, Any], accelerator: DdpAccelerator) -> Sequence[str]:
        model = LanguageModel(
            vocab,
            bilm=Lazy(BiLm, Params(deepcopy(BILM))),
            softmax=Lazy(OutputSoftmax, Params(softmax)),
            ddp_accelerator=accelerator,
        )
        return getattr(model, "_ddp_params_and_buffers_to_ignore", [])

    sampled = {"type": "sampled", "num_samples": 2}
    assert left_by(sampled, TorchDdpAccelerator()) == ["softmax.weight", "softmax.bias"]
    assert left_by({**sampled, "sparse": False}, TorchDdpAccelerator()) == []
    assert left_by({"type": "full"}, TorchDdpAccelerator()) == []
    # Another accelerator does not know of it.
    assert left_by(sampled, DdpAccelerator()) == []


def test_workers_leave_the_gradients_of_sampled_words_to_the_softmax(tmp_path: Path) -> None:
    run_in_two_workers(check_what_is_left_to_the_softmax, tmp_path)


def test_evaluation_weights_batches_by_their_words(bilm_archive: Path) -> None:
    found = evaluate_from_archive(bilm_archive, EXT_VARS["NEWS_DEV"], batch_weight_key="num_tokens")
    assert found["loss"] == pytest.approx(math.log(found["perplexity"]), rel=1e-5)


def test_an_initializer_draws_what_it_matches() -> None:
    vocab = Vocabulary.from_instances(instances_of("a b"))
    drawn = {"regexes": [["softmax.bias", {"type": "constant", "val": 7.0}]]}
    model = model_for(vocab, initializer=drawn)
    assert (model.get_parameter("softmax.bias") == 7.0).all()
    assert not (model.get_parameter("softmax.weight") == 7.0).any()


def test_a_namespace_without_words_is_an_error() -> None:
    vocab = Vocabulary.from_instances(instances_of("a b"))
    with pytest.raises(ConfigurationError, match=r"namespace 'words' .* are \['tokens'\]"):
        model_for(vocab, namespace="words")


def test_each_row_of_the_confusion_matrix_counts_one_frequent_word_in_both_directions() -> None:
    instances = instances_of("the cat saw the dog", "the dog ran", "a dog", "the cat")
    vocab = Vocabulary.from_instances(instances)
    model = model_for(vocab, num_confusion_words=3)
    for instance in instances:
        model(**batch_of([instance], vocab))
    metrics = model.get_metrics(reset=True)
    assert metrics["confusion_words"] == ["the", "dog", "cat", "(the rest)"]
    by_word = numpy.array(metrics["confusion"]).sum(axis=1)
    # The rest: "saw", "ran" and "a" in both directions, and a boundary of 4 sentences in each.
    assert by_word.tolist() == [2 * 4, 2 * 3, 2 * 2, 2 * 3 + 2 * 4]


class Predictions(NamedTuple):
    """What a plain loop over single sentences found."""

    losses: List[float]
    targets: List[int]
    best: List[List[int]]


@pytest.fixture(scope="module")
def news() -> List[Instance]:
    reader = DatasetReader.from_params(
        Params({"type": "elmo_scratch_sentences", "tokenizer": {"type": "spacy_blank"}})
    )
    instances = list(reader.read(NEWS))
    for instance in instances:
        reader.apply_token_indexers(instance)
    return instances


@pytest.fixture(scope="module")
def news_vocab(news: List[Instance]) -> Vocabulary:
    return Vocabulary.from_instances(news)


@pytest.fixture(scope="module")
def news_model(news: List[Instance], news_vocab: Vocabulary) -> LanguageModel:
    """A model that has learned enough to be right now and then."""
    torch.manual_seed(5)
    model = model_for(news_vocab)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    batch = batch_of(news, news_vocab)
    for _ in range(12):
        optimizer.zero_grad()
        model(**batch)["loss"].backward()
        optimizer.step()
    model.get_metrics(reset=True)
    return model.eval()


@pytest.fixture(scope="module")
def metrics(
    news: List[Instance], news_vocab: Vocabulary, news_model: LanguageModel
) -> Dict[str, Any]:
    """After three uneven batches."""
    with torch.no_grad():
        for part in (news[:3], news[3:50], news[50:]):
            news_model(**batch_of(part, news_vocab))
    return news_model.get_metrics(reset=True)


@pytest.fixture(scope="module")
def by_loop(
    news: List[Instance], news_vocab: Vocabulary, news_model: LanguageModel
) -> Dict[str, Predictions]:
    found = {"left_to_right": Predictions([], [], []), "right_to_left": Predictions([], [], [])}
    weight = news_model.get_parameter("softmax.weight")
    bias = news_model.get_parameter("softmax.bias")
    with torch.no_grad():
        for instance in news:
            words = words_of(instance)
            ids = [news_vocab.get_token_index(word) for word in ["<S>", *words, "</S>"]]
            sentence = torch.tensor([ids[1:-1]])
            top = news_model.bilm(sentence, torch.ones_like(sentence).bool()).layers[-1, 0]
            for place, state in enumerate(top):
                left_to_right, right_to_left = state[:7], state[7:]
                for direction, half, target_place in (
                    ("left_to_right", left_to_right, place + 1),
                    ("right_to_left", right_to_left, place - 1),
                ):
                    if 0 <= target_place < len(ids):
                        scores = torch.log_softmax(weight @ half + bias, dim=0)
                        target = ids[target_place]
                        found[direction].losses.append(-scores[target].item())
                        found[direction].targets.append(target)
                        found[direction].best.append(scores.topk(5).indices.tolist())
    return found


@pytest.mark.parametrize("direction", ["left_to_right", "right_to_left"])
def test_the_perplexity_of_a_direction_is_that_of_single_sentences(
    direction: str, metrics: Dict[str, Any], by_loop: Dict[str, Predictions]
) -> None:
    mean = sum(by_loop[direction].losses) / len(by_loop[direction].losses)
    assert metrics[f"loss_{direction}"] == pytest.approx(mean, rel=1e-6)
    assert metrics[f"perplexity_{direction}"] == pytest.approx(math.exp(mean), rel=1e-5)


def test_the_perplexity_over_both_directions_is_of_the_mean_of_their_losses(
    metrics: Dict[str, Any], by_loop: Dict[str, Predictions]
) -> None:
    losses = by_loop["left_to_right"].losses + by_loop["right_to_left"].losses
    expected = math.exp(sum(losses) / len(losses))
    assert metrics["perplexity"] == pytest.approx(expected, rel=1e-5)


def test_both_directions_have_as_many_targets(
    news: List[Instance], metrics: Dict[str, Any], by_loop: Dict[str, Predictions]
) -> None:
    per_direction = sum(len(words_of(instance)) + 1 for instance in news)
    assert numpy.array(metrics["confusion"]).sum() == 2 * per_direction
    assert [len(found.targets) for found in by_loop.values()] == [per_direction, per_direction]


def test_accuracies_and_macro_scores_equal_a_plain_count_and_scikit_learn(
    metrics: Dict[str, Any], by_loop: Dict[str, Predictions]
) -> None:
    targets = sum((found.targets for found in by_loop.values()), [])
    best: List[List[int]] = sum((found.best for found in by_loop.values()), [])
    guesses = [five[0] for five in best]
    hits = sum(guess == target for guess, target in zip(guesses, targets, strict=True))
    in_five = sum(target in five for five, target in zip(best, targets, strict=True))
    assert 0 < hits < in_five < len(targets)
    assert metrics["top_1_accuracy"] == hits / len(targets)
    assert metrics["top_5_accuracy"] == in_five / len(targets)
    expected = precision_recall_fscore_support(targets, guesses, average="macro", zero_division=0)[
        :3
    ]
    ours = [metrics[f"macro_{score}"] for score in ("precision", "recall", "f1")]
    assert ours == pytest.approx(expected, abs=1e-12)


def test_the_confusion_matrix_tells_the_twenty_most_frequent_words_apart(
    news: List[Instance],
    news_vocab: Vocabulary,
    metrics: Dict[str, Any],
    by_loop: Dict[str, Predictions],
) -> None:
    counts = Counter(word for instance in news for word in words_of(instance))
    chosen = metrics["confusion_words"][:-1]
    assert len(chosen) == 20
    assert [counts[word] for word in chosen] == [count for _, count in counts.most_common(20)]
    ids = [news_vocab.get_token_index(word) for word in chosen]
    targets, guesses = [], []
    for found in by_loop.values():
        targets += [ids.index(word) if word in ids else 20 for word in found.targets]
        guesses += [ids.index(five[0]) if five[0] in ids else 20 for five in found.best]
    assert metrics["confusion_words"][-1] == "(the rest)"
    assert metrics["confusion"] == confusion_matrix(targets, guesses, labels=range(21)).tolist()


def test_the_confusion_matrix_comes_at_the_end_of_an_epoch_only_and_then_all_starts_anew() -> None:
    instances = instances_of("a b c")
    vocab = Vocabulary.from_instances(instances)
    model = model_for(vocab).eval()
    model(**batch_of(instances, vocab))
    within = model.get_metrics()
    assert not any(name.startswith("confusion") for name in within)
    assert all(isinstance(value, float) for value in within.values())
    first = model.get_metrics(reset=True)
    assert numpy.array(first["confusion"]).sum() == 8
    assert first.items() >= within.items()
    assert model.get_metrics(reset=True) == {}
    model(**batch_of(instances, vocab))
    assert model.get_metrics(reset=True) == first


def test_the_same_seed_gives_the_same_loss_to_the_bit() -> None:
    instances = instances_of("a b c d e", "b c a")

    def loss_of(seed: int) -> float:
        prepare_environment(Params({"random_seed": seed, "numpy_seed": 3, "pytorch_seed": seed}))
        vocab = Vocabulary.from_instances(instances)
        return model_for(vocab, dropout=0.3)(**batch_of(instances, vocab))["loss"].item()

    assert loss_of(17) == loss_of(17)
    assert loss_of(17) != loss_of(19)


@pytest.mark.parametrize(
    "softmax",
    [
        {"type": "full"},
        {"type": "sampled", "num_samples": 3},
        {"type": "adaptive", "cutoffs": [2, 4], "div_value": 2.0},
    ],
    ids=lambda softmax: softmax["type"],
)
def test_autocast_does_not_round_the_losses(softmax: Dict[str, Any]) -> None:
    instances = instances_of("a b c d e", "b c a")
    vocab = Vocabulary.from_instances(instances)
    model = model_for(vocab, softmax=softmax)
    batch = batch_of(instances, vocab)
    plain = model.eval()(**batch)["loss"]
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(**batch)["loss"]
        loss = model.train()(**batch)["loss"]
    assert rounded.dtype == loss.dtype == torch.float32
    # The states are rounded, and no more.
    assert rounded.item() == pytest.approx(plain.item(), rel=1e-2)
    loss.backward()
    assert all(weight.grad is not None for weight in model.bilm.parameters())


def word_vectors(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_words_of_a_file_of_word_vectors_start_from_its_vectors(tmp_path: Path) -> None:
    vectors = word_vectors(
        tmp_path / "vectors.txt",
        "4 7",
        "b 0.1 -0.2 0.3 -0.4 0.5 -0.6 0.7",
        "unseen 9 9 9 9 9 9 9",
        "é 1 2 3 4 5 6 7.25",
        "</S> 7 6 5 4 3 2 1",
    )
    vocab = Vocabulary.from_instances(instances_of("a b é"))
    model = model_for(vocab, pretrained_file=str(vectors))
    weight = model.get_parameter("bilm.token_encoder.embedding.weight")
    assert weight.requires_grad
    rows = {word: weight[vocab.get_token_index(word)] for word in ("a", "b", "é", "</S>", "<S>")}
    assert torch.equal(rows["b"], torch.tensor([0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7]))
    assert torch.equal(rows["é"], torch.tensor([1, 2, 3, 4, 5, 6, 7.25]))
    assert torch.equal(rows["</S>"], torch.tensor([7.0, 6, 5, 4, 3, 2, 1]))
    assert not weight[0].any()  # padding
    for word in ("a", "<S>"):
        assert rows[word].unique().numel() == 7  # drawn at random


def test_word_vectors_of_another_dimension_are_an_error(tmp_path: Path) -> None:
    vectors = word_vectors(tmp_path / "vectors.txt", "2 5", "a 1 2 3 4 5", "b 1 2 3 4 5")
    vocab = Vocabulary.from_instances(instances_of("a b"))
    with pytest.raises(ConfigurationError, match="expected vectors of 7 numbers.*have 5"):
        model_for(vocab, pretrained_file=str(vectors))


def test_an_unknown_setting_is_an_error_that_names_it() -> None:
    vocab = Vocabulary.from_instances(instances_of("a"))
    with pytest.raises((ConfigurationError, TypeError), match="num_confusing_words"):
        model_for(vocab, num_confusing_words=3)


def test_it_trains_saves_and_loads(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    params = params_on_fixtures(CONFIGS / "bilm" / "fixture.jsonnet").as_dict()
    params["train_data_path"] = params["validation_data_path"]  # the shorter of the two
    params["data_loader"] = {"batch_size": 16}  # buckets come in a random order
    config.write_text(json.dumps(params), encoding="utf-8")
    case = ModelTestCase()
    case.TEST_DIR = tmp_path
    with logging_as_before():
        case.ensure_model_can_train_save_and_load(config)


def test_its_archive_loads_where_the_word_vectors_are_no_more(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b c\nb a\n", encoding="utf-8")
    vectors = word_vectors(tmp_path / "vectors.txt", "1 7", "b 1 2 3 4 5 6 7")
    params: Dict[str, Any] = {
        "dataset_reader": {"type": "elmo_scratch_sentences"},
        "train_data_path": str(text),
        "model": {"type": "elmo_scratch_bilm", "bilm": BILM, "pretrained_file": str(vectors)},
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "optimizer": {"type": "sgd", "lr": 0.0}},
    }
    train(Params(params), tmp_path / "run")
    vectors.unlink()
    model = load_archive(tmp_path / "run" / "model.tar.gz").model
    weight = model.get_parameter("bilm.token_encoder.embedding.weight")
    assert torch.equal(
        weight[model.vocab.get_token_index("b")], torch.tensor([1.0, 2, 3, 4, 5, 6, 7])
    )
