import json
from copy import deepcopy
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import ModelTestCase
from allennlp.common.util import prepare_environment
from allennlp.data import Batch, Instance, Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.models import Model
from allennlp.modules import Seq2VecEncoder, TextFieldEmbedder
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from elmo_scratch.data import AgNewsReader
from elmo_scratch.data.readers import ag_news_rows
from elmo_scratch.models import Classifier, ConcatenatedPooling
from tests import FIXTURES_ROOT
from tests.tiny_training import CONFIGS, logging_as_before, params_on_fixtures

DEV = FIXTURES_ROOT / "news" / "dev.csv"
CLASSES = ["World", "Sports", "Business", "Sci/Tech"]
EMBEDDER = {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 7}}}
POOLING = {"type": "boe", "embedding_dim": 7, "averaged": True}
LSTM = {"type": "lstm", "input_size": 7, "hidden_size": 5, "bidirectional": True}
CONVOLUTIONS = {"type": "cnn", "embedding_dim": 7, "num_filters": 3, "ngram_filter_sizes": [1, 2]}


def instances_of(*texts: str, label: str = "World", min_tokens: int = 0) -> List[Instance]:
    indexer = SingleIdTokenIndexer(token_min_padding_length=min_tokens)
    reader = AgNewsReader(token_indexers={"tokens": indexer})
    instances = [reader.text_to_instance(text, label) for text in texts]
    for instance in instances:
        reader.apply_token_indexers(instance)
    return instances


def vocabulary(*words: str) -> Vocabulary:
    vocab = Vocabulary()
    vocab.add_tokens_to_namespace(list(words), "tokens")
    vocab.add_tokens_to_namespace(CLASSES, "labels")
    return vocab


def model_for(vocab: Vocabulary, **settings: Any) -> Classifier:
    params = {
        "type": "elmo_scratch_classifier",
        "text_field_embedder": EMBEDDER,
        "seq2vec_encoder": POOLING,
        **settings,
    }
    model = Model.from_params(Params(deepcopy(params)), vocab=vocab)
    assert isinstance(model, Classifier)
    return model


def batch_of(instances: List[Instance], vocab: Vocabulary) -> Dict[str, Any]:
    batch = Batch(instances)
    batch.index_instances(vocab)
    return batch.as_tensor_dict()


def test_the_scores_are_a_linear_function_of_the_pooled_vectors() -> None:
    vocab = vocabulary("a", "b")
    model = model_for(vocab).eval()
    rows = model.get_parameter("text_field_embedder.token_embedder_tokens.weight")
    a, b = rows[vocab.get_token_index("a")], rows[vocab.get_token_index("b")]
    expected = torch.softmax(model.output.weight @ ((a + 2 * b) / 3) + model.output.bias, dim=0)
    output = model(**batch_of(instances_of("b a b", "a"), vocab))
    torch.testing.assert_close(output["probabilities"][0], expected)


@pytest.mark.parametrize(
    "settings, part",
    [
        ({"seq2vec_encoder": {**CONVOLUTIONS, "embedding_dim": 9}}, "`seq2vec_encoder`"),
        ({"seq2vec_encoder": CONVOLUTIONS, "seq2seq_encoder": LSTM}, "`seq2vec_encoder`"),
        ({"seq2seq_encoder": {**LSTM, "input_size": 9}}, "`seq2seq_encoder`"),
    ],
)
def test_parts_that_do_not_fit_each_other_are_an_error(settings: Dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigurationError, match=f"must match the input of {part}.* but got"):
        model_for(vocabulary("a"), **settings)


@pytest.mark.parametrize(
    "settings, sizes",
    [
        ({"seq2vec_encoder": {"type": "boe"}}, (7, 7)),
        ({"seq2vec_encoder": {"type": "lstm", "hidden_size": 3}}, (7, 7)),
        ({"seq2vec_encoder": {"type": "boe"}, "seq2seq_encoder": LSTM}, (7, 10)),
        (
            {
                "seq2vec_encoder": {"type": "boe"},
                "seq2seq_encoder": {"type": "lstm", "hidden_size": 5},
            },
            (7, 5),
        ),
        (
            {
                "seq2vec_encoder": {**POOLING, "embedding_dim": 5},
                "seq2seq_encoder": {"type": "lstm", "hidden_size": 5},
            },
            (7, 5),
        ),
    ],
)
def test_sizes_that_a_config_leaves_out_are_those_of_the_part_before(
    settings: Dict[str, Any], sizes: Tuple[int, int]
) -> None:
    model = model_for(vocabulary("a"), **settings)
    encoders = (model.seq2seq_encoder, model.seq2vec_encoder)
    assert tuple(encoder.get_input_dim() for encoder in encoders) == sizes


def test_a_config_without_derived_sizes_draws_the_weights_that_it_always_drew() -> None:
    vocab, stated = vocabulary("a"), {**LSTM, "type": "lstm"}
    pooling = {"type": "lstm", "input_size": 10, "hidden_size": 3}
    torch.manual_seed(5)
    model = model_for(vocab, seq2vec_encoder=pooling, seq2seq_encoder=stated)
    torch.manual_seed(5)
    embedder = TextFieldEmbedder.from_params(Params(deepcopy(EMBEDDER)), vocab=vocab)
    first = Seq2VecEncoder.from_params(Params({**pooling}))
    assert embedder.get_output_dim() == 7
    for one, other in zip(first.parameters(), model.seq2vec_encoder.parameters(), strict=True):
        assert torch.equal(one, other)


def test_an_initializer_draws_what_it_matches() -> None:
    vocab = vocabulary(*"abcdefgh")
    drawn = {"regexes": [["text_field_embedder.*", {"type": "constant", "val": 7.0}]]}
    model = model_for(vocab, initializer=drawn)
    assert (model.text_field_embedder.token_embedder_tokens.weight == 7.0).all()
    assert not (model.output.weight == 7.0).any()


def test_the_loss_is_the_mean_cross_entropy() -> None:
    vocab = vocabulary("a", "b")
    model = model_for(vocab)
    with torch.no_grad():
        model.output.weight.zero_()
        model.output.bias.copy_(torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 8]).log())
    instances = instances_of("a", "b a", label="World") + instances_of("b", label="Sports")
    loss = model(**batch_of(instances, vocab))["loss"]
    # Probability 1/2 twice and 1/4 once: (1 + 1 + 2) / 3 bits.
    assert loss.item() == pytest.approx(4 / 3 * 0.693147, abs=1e-5)


def test_in_training_the_loss_may_be_that_of_smoothed_classes() -> None:
    vocab = vocabulary("river")
    model = model_for(vocab, label_smoothing=0.2)
    batch = batch_of(instances_of("river", label="Sports"), vocab)
    probabilities = model(**batch)["probabilities"][0]
    smoothed = torch.full((4,), 0.05)
    smoothed[vocab.get_token_index("Sports", "labels")] += 0.8
    expected = -(smoothed * probabilities.log()).sum()
    assert model(**batch)["loss"].item() == pytest.approx(expected.item(), abs=1e-6)
    plain = model_for(vocab).eval()
    plain.load_state_dict(model.state_dict())
    assert torch.equal(model.eval()(**batch)["loss"], plain(**batch)["loss"])


def test_in_training_it_counts_its_tokens() -> None:
    vocab = vocabulary("a", "b", "c")
    model = model_for(vocab)
    batch = batch_of(instances_of("a b c", "", "b c"), vocab)
    assert model.train()(**batch)["num_tokens"].item() == 5
    assert "num_tokens" not in model.eval()(**batch)


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_more_than_all_cannot_be_spread(share: float) -> None:
    with pytest.raises(ConfigurationError, match="expected `label_smoothing` of 0 or more"):
        model_for(vocabulary("river"), label_smoothing=share)


def test_without_labels_there_is_no_loss_and_nothing_is_counted() -> None:
    vocab = vocabulary("a")
    model = model_for(vocab)
    instance = instances_of("a")[0]
    del instance.fields["label"]
    assert set(model(**batch_of([instance], vocab))) == {"probabilities"}
    assert sum(map(sum, model.get_metrics(reset=True)["confusion"])) == 0


def test_answers_name_the_best_class_and_the_probability_of_each() -> None:
    model = model_for(vocabulary("a"))
    probabilities = torch.tensor([[0.125, 0.5, 0.25, 0.125], [0.25, 0.125, 0.0, 0.625]])
    readable = model.make_output_human_readable({"probabilities": probabilities})
    assert readable["label"] == ["Sports", "Sci/Tech"]
    assert readable["probabilities"] == [
        {"World": 0.125, "Sports": 0.5, "Business": 0.25, "Sci/Tech": 0.125},
        {"World": 0.25, "Sports": 0.125, "Business": 0.0, "Sci/Tech": 0.625},
    ]


def test_metrics_over_uneven_batches_equal_those_of_scikit_learn() -> None:
    reader = AgNewsReader()
    instances = list(reader.read(DEV))
    for instance in instances:
        reader.apply_token_indexers(instance)
    vocab = Vocabulary.from_instances(instances)
    torch.manual_seed(3)
    model = model_for(vocab).eval()
    guesses: List[str] = []
    with torch.no_grad():
        for part in (instances[:1], instances[1:12], instances[12:]):
            output = model(**batch_of(part, vocab))
            guesses += model.make_output_human_readable(output)["label"]
    metrics = model.get_metrics(reset=True)

    gold = [row.label for row in ag_news_rows(DEV)]
    names = metrics["confusion_classes"]
    assert sorted(names) == sorted(CLASSES)
    assert metrics["confusion"] == confusion_matrix(gold, guesses, labels=names).tolist()
    hits = sum(guess == true for guess, true in zip(guesses, gold, strict=True))
    assert 0 < hits < 80
    assert metrics["accuracy"] == hits / 80
    macro = precision_recall_fscore_support(gold, guesses, average="macro", zero_division=0)[:3]
    by_class = precision_recall_fscore_support(gold, guesses, labels=names, zero_division=0)[:3]
    for score, over_all, of_classes in zip(
        ("precision", "recall", "f1"), macro, by_class, strict=True
    ):
        assert metrics[f"macro_{score}"] == pytest.approx(over_all, abs=1e-12)
        ours = [metrics[f"{score}_{name}"] for name in names]
        assert ours == pytest.approx(list(of_classes), abs=1e-12)


def test_the_confusion_matrix_comes_at_the_end_of_an_epoch_only_and_then_all_starts_anew() -> None:
    vocab = vocabulary("a")
    model = model_for(vocab)
    model(**batch_of(instances_of("a", "a a", label="Business"), vocab))
    within = model.get_metrics()
    assert not any(name.startswith("confusion") for name in within)
    assert all(isinstance(value, float) for value in within.values())
    first = model.get_metrics(reset=True)
    assert first["confusion_classes"] == CLASSES
    assert [sum(row) for row in first["confusion"]] == [0, 0, 2, 0]
    assert first.items() >= within.items()
    assert model.get_metrics(reset=True)["confusion"] == [[0] * 4] * 4


LONGEST_N_GRAM = {"boe": 0, "cnn": 2, "elmo_scratch_pooling": 0}
"""What an encoder reads at once; the indexer must be told to pad a text to as many tokens."""


def test_a_text_is_pooled_in_three_ways() -> None:
    first, second, padding = [1.0, 7.0, -2.0, 5.0], [3.0, -4.0, -6.0, 2.0], [9.0, 9.0, 9.0, 9.0]
    tokens = torch.tensor([[first, second, padding], [second, padding, padding]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    pooled = {ends: ConcatenatedPooling(4, ends)(tokens, mask) for ends in (True, False)}
    highest, mean = [3.0, 7.0, -2.0, 5.0], [2.0, 1.5, -4.0, 3.5]
    # What a half that reads backwards has read last is the first token.
    assert pooled[True].tolist() == [[3.0, -4.0, -2.0, 5.0, *highest, *mean], second * 3]
    assert pooled[False].tolist() == [[*second, *highest, *mean], second * 3]


@pytest.mark.parametrize("size, ends", [(0, False), (0, True), (3, True)])
def test_a_width_that_cannot_be_pooled_is_an_error(size: int, ends: bool) -> None:
    with pytest.raises(ConfigurationError, match=f"`embedding_dim` of 1 or more, but got {size}"):
        ConcatenatedPooling(size, ends)


ENCODERS = pytest.mark.parametrize(
    "encoders",
    [
        {"seq2vec_encoder": POOLING},
        {"seq2seq_encoder": LSTM, "seq2vec_encoder": {**POOLING, "embedding_dim": 10}},
        {"seq2vec_encoder": CONVOLUTIONS},
        {"seq2vec_encoder": {"type": "elmo_scratch_pooling", "bidirectional": False}},
    ],
    ids=["boe", "lstm-boe", "cnn", "pooling"],
)


@ENCODERS
def test_an_empty_text_leaves_the_others_of_its_batch_as_they_are(encoders: Dict[str, Any]) -> None:
    vocab = vocabulary("a", "b")
    torch.manual_seed(11)
    model = model_for(vocab, **encoders)
    model.eval()
    alone = model(**batch_of(instances_of("a b a"), vocab))["probabilities"]
    together = model(**batch_of(instances_of("", "a b a", ""), vocab))
    torch.testing.assert_close(together["probabilities"][1], alone[0])
    torch.testing.assert_close(together["probabilities"][0].sum(), torch.tensor(1.0))
    together["loss"].backward()
    assert all(
        parameter.grad is None or parameter.grad.isfinite().all()
        for parameter in model.parameters()
    )


@ENCODERS
def test_a_text_is_classified_alone_however_short(encoders: Dict[str, Any]) -> None:
    vocab = vocabulary("a", "b")
    model = model_for(vocab, **encoders).eval()
    min_tokens = LONGEST_N_GRAM[encoders["seq2vec_encoder"]["type"]]
    for texts in (["a"], [""], ["", ""]):
        instances = instances_of(*texts, min_tokens=min_tokens)
        probabilities = model(**batch_of(instances, vocab))["probabilities"]
        assert probabilities.shape == (len(texts), 4)
        torch.testing.assert_close(probabilities.sum(dim=1), torch.ones(len(texts)))


@ENCODERS
def test_an_empty_text_gets_the_same_answer_alone_and_in_a_batch(encoders: Dict[str, Any]) -> None:
    vocab = vocabulary("a", "b")
    model = model_for(vocab, **encoders).eval()
    together = model(**batch_of(instances_of("a b a b", "", "a"), vocab))["probabilities"]
    for min_tokens in (0, 2):
        if min_tokens >= LONGEST_N_GRAM[encoders["seq2vec_encoder"]["type"]]:
            instances = instances_of("", min_tokens=min_tokens)
            alone = model(**batch_of(instances, vocab))["probabilities"]
            torch.testing.assert_close(together[1], alone[0])


@ENCODERS
def test_padding_changes_nothing(encoders: Dict[str, Any]) -> None:
    vocab = vocabulary("a", "b")
    torch.manual_seed(13)
    model = model_for(vocab, **encoders).eval()
    alone = model(**batch_of(instances_of("b a b"), vocab))["probabilities"]
    padded = model(**batch_of(instances_of("b a b", "a b a b a b a"), vocab))["probabilities"]
    torch.testing.assert_close(padded[0], alone[0])


def test_the_same_seed_gives_the_same_loss_to_the_bit() -> None:
    vocab = vocabulary("a", "b")

    def loss_of(seed: int) -> float:
        prepare_environment(Params({"random_seed": seed, "numpy_seed": 3, "pytorch_seed": seed}))
        model = model_for(
            vocab,
            seq2seq_encoder=LSTM,
            seq2vec_encoder={**POOLING, "embedding_dim": 10},
            dropout=0.5,
        )
        return model(**batch_of(instances_of("a b", "b"), vocab))["loss"].item()

    assert loss_of(17) == loss_of(17)
    assert loss_of(17) != loss_of(19)


def train_save_and_load(params: Dict[str, Any], folder: Path) -> None:
    params["train_data_path"] = params["validation_data_path"]  # the shorter of the two
    params["data_loader"] = {"batch_size": 16}  # buckets come in a random order
    config = folder / "config.json"
    config.write_text(json.dumps(params), encoding="utf-8")
    case = ModelTestCase()
    case.TEST_DIR = folder
    with logging_as_before():
        case.ensure_model_can_train_save_and_load(config)


def test_it_trains_saves_and_loads_over_elmo(bilm_archive: Path, tmp_path: Path) -> None:
    config = CONFIGS / "ag_news" / "elmo_trainable.jsonnet"
    train_save_and_load(params_on_fixtures(config, bilm_archive).as_dict(), tmp_path)


def test_it_trains_saves_and_loads_over_words_beside_elmo(
    bilm_archive: Path, tmp_path: Path
) -> None:
    """The `[x; ELMo]` of the paper: two embedders, each with an indexer of its own."""
    params = params_on_fixtures(CONFIGS / "ag_news" / "elmo_trainable.jsonnet", bilm_archive)
    config = params.as_dict()
    config["dataset_reader"]["token_indexers"] = {
        name: {"type": "single_id", "namespace": name, "lowercase_tokens": True}
        for name in ("words", "elmo")
    }
    config["vocabulary"] = {"min_count": {"words": 2}}
    config["model"] = {
        "type": "elmo_scratch_classifier",
        "text_field_embedder": {
            "token_embedders": {
                "words": {"type": "embedding", "embedding_dim": 7, "vocab_namespace": "words"},
                "elmo": {
                    "type": "elmo_scratch",
                    "pretrained_file": str(bilm_archive),
                    "namespace": "elmo",
                },
            }
        },
        "seq2vec_encoder": {"type": "boe", "embedding_dim": 7 + 64},
    }
    train_save_and_load(config, tmp_path)
