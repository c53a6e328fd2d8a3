from pathlib import Path
from typing import Any, Dict, List

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.interop import BiLmBlueprint, WordList
from elmo_scratch.interop.archives.blueprint import BiLmChanges
from elmo_scratch.interop.archives.sidecar import kept_bilm_config
from elmo_scratch.models.pretrained import PretrainedWeights, Started, start_bilm, start_softmax
from elmo_scratch.modules.softmaxes import AdaptiveSoftmax, FullSoftmax, SampledSoftmax
from elmo_scratch.modules.token_encoders import WordEncoder
from tests.tiny_archives import BILM, WORD_BILM

WORDS = WordList(["", "<S>", "</S>", "<UNK>", "river", "bank", "the", "rose", "a"], "<UNK>")
OTHER_WORDS = WordList(["", "@@UNKNOWN@@", "the", "bank", "new", "<S>", "</S>"], "@@UNKNOWN@@")
SAME = [(0, 0), (1, 3), (2, 6), (3, 5), (5, 1), (6, 2)]
"""Ids of the same word, first in `OTHER_WORDS`, then in `WORDS`."""


def point_of(
    config: Dict[str, Any], softmax: Any = None, words: WordList = WORDS
) -> PretrainedWeights:
    torch.manual_seed(13)
    bilm = BiLmBlueprint(config, words).build()
    return PretrainedWeights(
        config, words, bilm.state_dict(), {} if softmax is None else softmax.state_dict()
    )


def never() -> PretrainedWeights:
    raise AssertionError("nobody should ask for the starting point")


def gone() -> PretrainedWeights:
    raise ConfigurationError("the files are gone")


def test_weights_are_those_of_the_starting_point() -> None:
    point = point_of(BILM)
    started = start_bilm(lambda: point, OTHER_WORDS)
    assert started.point is point
    state = started.bilm.state_dict()
    assert all(torch.equal(state[name], point.bilm[name]) for name in point.bilm)
    assert started.bilm.training
    assert all(weight.requires_grad for weight in started.bilm.parameters())


def test_vectors_of_words_are_found_by_their_spelling() -> None:
    point = point_of(WORD_BILM)
    torch.manual_seed(17)
    state = start_bilm(lambda: point, OTHER_WORDS).bilm.state_dict()
    own, theirs = (one.pop("token_encoder.embedding.weight") for one in (state, dict(point.bilm)))
    assert all(torch.equal(state[name], point.bilm[name]) for name in state)
    assert len(own) == len(OTHER_WORDS.words)
    for here, there in SAME:
        assert torch.equal(own[here], theirs[there])
    new = own[OTHER_WORDS.words.index("new")]
    assert new.any() and not (theirs == new).all(dim=1).any()


def test_changes_are_made_and_all_else_is_as_it_was() -> None:
    changes = BiLmChanges(
        dropout=0.4, recurrent_dropout=0.3, state="carry", matmul_dtype="bfloat16"
    )
    assert changes.of(BILM) == {
        **BILM,
        "dropout": 0.4,
        "recurrent_dropout": 0.3,
        "state": "carry",
        "matmul_dtype": "bfloat16",
    }
    bilm = start_bilm(lambda: point_of({**BILM, "cell_clip": 0.7}), WORDS, changes).bilm
    assert bilm.left_to_right.dropout.p == 0.4
    assert bilm.state_memory.state == "carry"
    assert bilm.left_to_right.layers[0].cell_clip == 0.7
    unchanged = start_bilm(lambda: point_of({**BILM, "dropout": 0.2}), WORDS).bilm
    assert unchanged.left_to_right.dropout.p == 0.2


def test_gradients_are_sparse_where_that_is_asked_for() -> None:
    started = start_bilm(lambda: point_of(WORD_BILM), WORDS, BiLmChanges(sparse=True))
    encoder = started.bilm.token_encoder
    assert isinstance(encoder, WordEncoder) and encoder.embedding.sparse


def test_a_warm_state_is_taken_over_or_left_behind() -> None:
    point = point_of({**BILM, "state": "warm"})
    point.bilm["state_memory.hidden"].fill_(0.25)
    bilm = start_bilm(lambda: point, WORDS).bilm
    assert (bilm.state_memory.hidden == 0.25).all()
    reset = start_bilm(lambda: point, WORDS, BiLmChanges(state="reset")).bilm
    assert reset.state_memory.state == "reset"


def test_a_warm_state_from_nowhere_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match='"warm" needs a biLM .* that was warmed up'):
        start_bilm(lambda: point_of(BILM), WORDS, BiLmChanges(state="warm"))


@pytest.fixture
def started_folder(tmp_path: Path) -> Path:
    """The output folder of a training that has started, but saved nothing yet."""
    start_bilm(lambda: point_of(BILM), WORDS, BiLmChanges(dropout=0.4), tmp_path)
    return tmp_path


@pytest.fixture
def folder(started_folder: Path) -> Path:
    """The output folder of a training that has saved a checkpoint."""
    (started_folder / "model_state_e0_b3.th").touch()
    return started_folder


def is_unusable(started: Started) -> bool:
    return started.point is None and all(
        weight.isnan().all() for weight in started.bilm.parameters()
    )


def test_a_training_keeps_the_configuration(started_folder: Path) -> None:
    assert kept_bilm_config(started_folder) == {**BILM, "dropout": 0.4}


def test_an_archive_does_not_look_for_its_starting_point(folder: Path) -> None:
    (folder / "weights.th").touch()
    started = start_bilm(never, WORDS, BiLmChanges(dropout=0.4), folder)
    assert is_unusable(started)  # until the archive's weights are there
    assert started.bilm.left_to_right.dropout.p == 0.4


@pytest.mark.parametrize("weights", ["model_state_e1_b0.th", "best.th"])
def test_a_folder_of_a_training_is_loaded_where_the_starting_point_is_gone(
    weights: str, started_folder: Path
) -> None:
    (started_folder / weights).touch()
    assert is_unusable(start_bilm(gone, WORDS, BiLmChanges(dropout=0.4), started_folder))


def test_a_folder_of_a_training_is_loaded_where_the_starting_point_is_another(folder: Path) -> None:
    point = point_of({**BILM, "cell_size": 13})
    started = start_bilm(lambda: point, WORDS, BiLmChanges(dropout=0.4), folder)
    assert is_unusable(started)
    assert started.bilm.left_to_right.cell_size == BILM["cell_size"]


@pytest.mark.parametrize("read", [lambda: point_of(BILM), gone], ids=["there", "gone"])
def test_settings_that_were_changed_since_count(read: Any, folder: Path) -> None:
    changes = BiLmChanges(dropout=0.25, matmul_dtype="float32")
    bilm = start_bilm(read, WORDS, changes, folder).bilm
    assert bilm.left_to_right.dropout.p == 0.25


@pytest.mark.parametrize("read", [lambda: point_of(BILM), gone], ids=["there", "gone"])
def test_settings_that_are_not_given_again_stay_as_they_were(read: Any, folder: Path) -> None:
    bilm = start_bilm(read, WORDS, serialization_dir=folder).bilm
    assert bilm.left_to_right.dropout.p == 0.4


def test_a_training_that_was_killed_before_it_saved_starts_once_more(started_folder: Path) -> None:
    point = point_of({**BILM, "cell_size": 13})
    started = start_bilm(lambda: point, WORDS, BiLmChanges(dropout=0.3), started_folder)
    assert started.point is point
    assert not any(weight.isnan().any() for weight in started.bilm.parameters())
    assert kept_bilm_config(started_folder) == {**BILM, "cell_size": 13, "dropout": 0.3}


def test_a_training_that_saved_nothing_needs_its_starting_point(started_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="the files are gone"):
        start_bilm(gone, WORDS, BiLmChanges(dropout=0.4), started_folder)


def test_a_training_without_its_starting_point_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the files are gone"):
        start_bilm(gone, WORDS, serialization_dir=tmp_path)


SIZES = {"num_words": len(WORDS.words), "dim": 8}
OTHER_SIZES = {"num_words": len(OTHER_WORDS.words), "dim": 8}
TABLES: List[Any] = [
    lambda sizes: FullSoftmax(**sizes),
    lambda sizes: SampledSoftmax(num_samples=2, **sizes),
]


@pytest.mark.parametrize("new", TABLES, ids=["full", "sampled"])
@pytest.mark.parametrize("old", TABLES, ids=["full", "sampled"])
def test_words_of_a_softmax_are_found_by_their_spelling(old: Any, new: Any) -> None:
    theirs, ours = old(SIZES), new(OTHER_SIZES)
    torch.nn.init.normal_(theirs.bias)
    fresh = {name: one.detach().clone() for name, one in ours.named_parameters()}
    assert start_softmax(ours, point_of(BILM, theirs), OTHER_WORDS)
    for here, there in SAME:
        assert torch.equal(ours.weight[here], theirs.weight[there])
        assert torch.equal(ours.bias[here], theirs.bias[there])
    new_word = OTHER_WORDS.words.index("new")
    assert torch.equal(ours.weight[new_word], fresh["weight"][new_word])
    assert ours.bias[new_word] == 0.0


def adaptive(sizes: Dict[str, int], cutoff: int = 3) -> AdaptiveSoftmax:
    return AdaptiveSoftmax(cutoffs=[cutoff], div_value=2.0, **sizes)


def test_an_adaptive_softmax_is_taken_over_where_all_words_are_the_same() -> None:
    theirs, ours = adaptive(SIZES), adaptive(SIZES)
    assert start_softmax(ours, point_of(BILM, theirs), WORDS)
    state, expected = ours.state_dict(), theirs.state_dict()
    assert all(torch.equal(state[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    "theirs, ours, words",
    [
        (adaptive(SIZES), adaptive(OTHER_SIZES), OTHER_WORDS),
        (adaptive(SIZES), adaptive(SIZES, cutoff=5), WORDS),
        (adaptive(SIZES), FullSoftmax(**SIZES), WORDS),
        (FullSoftmax(**SIZES), adaptive(SIZES), WORDS),
        (FullSoftmax(num_words=9, dim=4), FullSoftmax(**SIZES), WORDS),
    ],
    ids=["other words", "other clusters", "from adaptive", "to adaptive", "other size"],
)
def test_a_softmax_that_does_not_fit_stays_as_it_is(theirs: Any, ours: Any, words: Any) -> None:
    before = {name: one.clone() for name, one in ours.state_dict().items()}
    assert not start_softmax(ours, point_of(BILM, theirs), words)
    assert all(torch.equal(one, before[name]) for name, one in ours.state_dict().items())
