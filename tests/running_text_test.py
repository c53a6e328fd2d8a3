import math
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.models import Model

from elmo_scratch.alphabet import character_ids
from elmo_scratch.data import CharacterIndexer, SentencesReader
from elmo_scratch.data.streams import StreamLoader
from elmo_scratch.models import LanguageModel
from elmo_scratch.modules.sequences import PackedVectors
from elmo_scratch.modules.softmaxes import SampledSoftmax

TEXT = [
    "the cat sat on the mat",
    "it rained",
    "dogs bark",
    "a cat slept on and on and on",
    "the end of it",
    "no",
    "then the dogs came back to the mat and the cat ran",
]
CHARACTERS = 8

ENCODERS: Dict[str, Dict[str, Any]] = {
    "word": {"type": "word", "dim": 5},
    "char_cnn": {
        "type": "char_cnn",
        "dim": 5,
        "filters": [[1, 4], [3, 6]],
        "max_characters_per_token": CHARACTERS,
    },
}

each_encoder = pytest.mark.parametrize("encoder", ENCODERS)


class Given(NamedTuple):
    """A language model and its text."""

    model: LanguageModel
    loader: StreamLoader
    vocab: Vocabulary


SOFTMAXES: Dict[str, Dict[str, Any]] = {
    "full": {"type": "full"},
    "sampled": {"type": "sampled", "num_samples": 9},
    "adaptive": {"type": "adaptive", "cutoffs": [8, 16], "div_value": 2.0},
}


def given(
    folder: Path, encoder: str, batch_size: int = 2, unroll_steps: int = 3, softmax: str = "full"
) -> Given:
    path = folder / "text.txt"
    path.write_text("\n".join(TEXT) + "\n")
    reader = SentencesReader(
        token_indexers={
            "tokens": SingleIdTokenIndexer(),
            "characters": CharacterIndexer(max_characters_per_token=CHARACTERS),
        }
    )
    loader = StreamLoader(
        reader,
        str(path),
        batch_size=batch_size,
        unroll_steps=unroll_steps,
        cache_dir=str(folder / "cache"),
    )
    vocab = Vocabulary.from_instances(loader.iter_instances())
    torch.manual_seed(13)
    bilm = {"token_encoder": ENCODERS[encoder], "cell_size": 7, "dropout": 0.0}
    params = {
        "type": "elmo_scratch_bilm",
        "bilm": bilm,
        "dropout": 0.0,
        "softmax": SOFTMAXES[softmax],
    }
    model = Model.from_params(Params(params), vocab=vocab)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    loader.index_with(vocab)
    assert isinstance(model, LanguageModel)
    return Given(model, loader, vocab)


def sentences_of_stream(loader: StreamLoader, stream: int) -> List[List[str]]:
    order = loader._order(0)
    return [TEXT[number].split() for part in order.sentences(stream) for number in part]


class Predicted(NamedTuple):
    """Log-probabilities of all words, and the word that came."""

    scores: torch.Tensor
    target: int


def independent_predictions(what: Given, batch_size: int, direction: int) -> List[Predicted]:
    """Every stream is read as a whole, without windows, and scored by `log_softmax`."""
    model, vocab = what.model, what.vocab
    stack = (model.bilm.left_to_right, model.bilm.right_to_left)[direction]
    predicted: List[Predicted] = []
    for stream in range(batch_size):
        read: List[str] = []
        for sentence in sentences_of_stream(what.loader, stream):
            marked = ["<S>", *sentence, "</S>"]
            read += marked if direction == 0 else marked[::-1]
        ids = torch.tensor([vocab.get_token_index(word) for word in read])
        encoder = model.bilm.token_encoder
        spelled = torch.tensor([character_ids(word, CHARACTERS) for word in read])
        vectors = encoder.encode_words(spelled if encoder.reads_characters else ids)
        states = stack(PackedVectors(vectors, [1] * len(read))).layers[-1]
        scores = states @ model.get_parameter("softmax.weight").t()
        scores += model.get_parameter("softmax.bias")
        if isinstance(model.softmax, SampledSoftmax):
            # Padding, which is never drawn, has no share.
            scores[:, 0] = -math.inf
        last = ("</S>", "<S>")[direction]
        predicted += [
            Predicted(scores[place].log_softmax(dim=0), int(ids[place + 1]))
            for place in range(len(read) - 1)
            if read[place] != last
        ]
    return predicted


@each_encoder
@pytest.mark.parametrize("batch_size, unroll_steps", [(1, 1), (2, 3), (3, 12)])
@pytest.mark.parametrize("softmax", ["full", "sampled"])
@torch.no_grad()
def test_metrics_are_those_of_the_whole_text_whatever_the_windows(
    tmp_path: Path, encoder: str, batch_size: int, unroll_steps: int, softmax: str
) -> None:
    what = given(tmp_path, encoder, batch_size, unroll_steps, softmax)
    what.model.eval()
    for _ in range(2):  # the second epoch starts anew
        counts = [what.model(**batch)["num_tokens"] for batch in what.loader]
        metrics = what.model.get_metrics(reset=True)
        assert sum(counts) == sum(len(sentence.split()) + 1 for sentence in TEXT)
        all_predicted: List[Predicted] = []
        for direction, name in enumerate(("left_to_right", "right_to_left")):
            predicted = independent_predictions(what, batch_size, direction)
            assert len(predicted) == sum(counts)
            loss = -sum(float(scores[target]) for scores, target in predicted) / len(predicted)
            assert metrics[f"perplexity_{name}"] == pytest.approx(math.exp(loss), rel=1e-5)
            all_predicted += predicted
        for best in (1, 5):
            found = [target in scores.topk(best).indices for scores, target in all_predicted]
            share = sum(found) / len(found)
            assert metrics[f"top_{best}_accuracy"] == pytest.approx(share)


@torch.no_grad()
def test_words_weigh_no_more_in_the_last_windows_which_hold_few(tmp_path: Path) -> None:
    what = given(tmp_path, "word")
    what.model.eval()
    means = [what.model(**batch)["loss"].item() for batch in what.loader]
    what.model.train()
    weighed = [what.model(**batch)["loss"].item() for batch in what.loader]
    shares = [batch["windows"]["mask"].float().mean().item() for batch in what.loader]  # type: ignore
    assert shares[0] == 1 and shares[-1] < 0.5
    assert weighed == pytest.approx([mean * share for mean, share in zip(means, shares)])


@torch.no_grad()
def test_a_word_weighs_the_same_in_windows_of_any_length(tmp_path: Path) -> None:
    what = given(tmp_path, "word", unroll_steps=9)
    for name in ("softmax.weight", "softmax.bias"):
        what.model.get_parameter(name).zero_()  # all words have the same loss
    usual = [what.model(**batch)["loss"].item() for batch in what.loader]
    reader, text = SentencesReader(token_indexers={"tokens": SingleIdTokenIndexer()}), "text.txt"
    loader = StreamLoader(
        reader,
        str(tmp_path / text),
        batch_size=2,
        unroll_steps=9,
        random_windows=True,
        cache_dir=str(tmp_path / "cache"),
    )
    loader.index_with(what.vocab)
    sizes = set()
    for _ in range(3):
        losses = []
        for batch in loader:
            windows: Dict[str, torch.Tensor] = batch["windows"]  # type: ignore
            losses.append(what.model(windows=windows)["loss"].item())
            sizes.add(windows["mask"].size(1))
        assert sum(losses) == pytest.approx(sum(usual), rel=1e-5)
    assert len(sizes) > 1


@torch.no_grad()
def test_losses_are_multiplied_in_training_alone(tmp_path: Path) -> None:
    what = given(tmp_path, "word")
    batch = next(iter(what.loader))
    plain = what.model(**batch)["loss"]
    what.model._loss_weight = 20.0
    assert what.model(**batch)["loss"].item() == pytest.approx(20 * plain.item())
    assert what.model.eval()(**batch)["loss"].item() == pytest.approx(plain.item())


def test_words_of_another_length_are_an_error(tmp_path: Path) -> None:
    what = given(tmp_path, "char_cnn")
    windows: Dict[str, torch.Tensor] = next(iter(what.loader))["windows"]  # type: ignore
    windows["characters"] = torch.nn.functional.pad(windows["characters"], (0, 4))
    message = f"reads {CHARACTERS} characters of each word, but its indexer makes {CHARACTERS + 4}"
    with pytest.raises(ConfigurationError, match=message):
        what.model(windows=windows)


@each_encoder
def test_gradients_stay_within_the_window(tmp_path: Path, encoder: str) -> None:
    what = given(tmp_path, encoder)
    batches = list(what.loader)
    first = what.model(**batches[0])["loss"]
    second = what.model(**batches[1])["loss"]
    second.backward()  # would fail if it reached into the first after that was freed
    first.backward()
    assert all(parameter.grad is not None for parameter in what.model.parameters())


@each_encoder
@torch.no_grad()
def test_what_is_carried_matters(tmp_path: Path, encoder: str) -> None:
    what = given(tmp_path, encoder)
    what.model.eval()
    batches = list(what.loader)
    alone = what.model(**batches[1])["loss"]
    what.model(**batches[0])
    assert what.model(**batches[1])["loss"] != alone


@torch.no_grad()
def test_in_training_alone_streams_may_start_from_zeros_within_a_text(tmp_path: Path) -> None:
    what = given(tmp_path, "word")
    batches = list(what.loader)

    def losses(probability: float) -> List[float]:
        what.model._state_reset_probability = probability
        return [what.model(**batch)["loss"].item() for batch in batches]

    carried = losses(0.0)
    forgotten = losses(1.0)
    for batch, ours, other in zip(batches[1:], forgotten[1:], carried[1:]):
        windows: Dict[str, torch.Tensor] = batch["windows"]  # type: ignore
        alone = what.model(windows={**windows, "is_first": torch.tensor(True)})
        assert ours == alone["loss"].item() != other
    assert forgotten[0] == carried[0]
    what.model.eval()
    assert losses(1.0) == losses(0.0)


@pytest.mark.parametrize(
    ("setting", "value", "most"),
    [
        *(("state_reset_probability", value, 1) for value in (-0.1, 1.1, math.nan)),
        *(("num_confusion_words", value, 1000) for value in (-1, 1001)),
    ],
)
def test_a_setting_out_of_its_range_is_an_error(
    setting: str, value: float, most: int, tmp_path: Path
) -> None:
    vocab = given(tmp_path, "word").vocab
    bilm = {"token_encoder": ENCODERS["word"], "cell_size": 7}
    params = {"type": "elmo_scratch_bilm", "bilm": bilm, setting: value}
    with pytest.raises(ConfigurationError, match=f"`{setting}` from 0 to {most}, but got {value}"):
        Model.from_params(Params(params), vocab=vocab)


def test_a_batch_without_a_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the field `sentence` or `windows`"):
        given(tmp_path, "word").model()


@each_encoder
@pytest.mark.parametrize("softmax", SOFTMAXES)
@pytest.mark.parametrize("is_ended", [False, True])
def test_a_window_in_which_nothing_is_predicted_has_no_loss(
    tmp_path: Path, encoder: str, softmax: str, is_ended: bool
) -> None:
    what = given(tmp_path, encoder, softmax=softmax)
    windows: Dict[str, torch.Tensor] = next(iter(what.loader))["windows"]  # type: ignore
    for name in ("left_to_right_targets", "right_to_left_targets"):
        windows[name] = torch.zeros_like(windows[name])
    if is_ended:
        windows["mask"] = torch.zeros_like(windows["mask"])
    output = what.model(windows=windows)
    output["loss"].backward()
    assert output["loss"] == 0 and output["num_tokens"] == 0
    for parameter in what.model.parameters():
        # The adaptive softmax leaves out a cluster without targets.
        if parameter.grad is None:
            assert softmax == "adaptive"
        else:
            assert not parameter.grad.to_dense().any()
