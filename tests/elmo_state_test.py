"""What an `Elmo` carries from batch to batch, and what of it is kept with its weights."""

import copy
import io
import pickle
from pathlib import Path
from typing import Callable, List

import pytest
import torch

from elmo_scratch import Elmo, batch_to_ids
from tests.tiny_elmo import (
    BATCHES,
    SENTENCES,
    OfficialFiles,
    vocabulary_of,
    word_ids,
    write_files,
)

IDS = batch_to_ids(SENTENCES)
TEXT = [["The", "river", "rose", "."], ["It", "rose", "for", "days"], ["naïve"]]
"""What warms up."""


def vectors_of(elmo: Elmo, batch: List[List[str]]) -> torch.Tensor:
    return elmo(batch_to_ids(batch))["elmo_representations"][0]


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    return (one - other).abs().max().item()


@pytest.fixture
def warm(files: OfficialFiles) -> Elmo:
    elmo = files.ours(state="warm")
    elmo.warm_up(TEXT)
    return elmo


def test_carried_a_row_starts_where_the_row_before_ended(files: OfficialFiles) -> None:
    elmo = files.ours()
    first, second = vectors_of(elmo, SENTENCES), vectors_of(elmo, SENTENCES)
    assert difference(first, second) > 0.1


def test_carried_a_row_depends_on_rows_of_its_own_number_only(files: OfficialFiles) -> None:
    one, other = files.ours(), files.ours()
    vectors_of(one, [["The"], ["bank"], ["river"]])
    vectors_of(other, [["The"], ["rates"], ["river"]])
    first, second = vectors_of(one, SENTENCES * 2), vectors_of(other, SENTENCES * 2)
    assert torch.allclose(first[[0, 2, 3]], second[[0, 2, 3]], atol=1e-6)
    assert difference(first[1], second[1]) > 0.01


def test_carried_a_row_that_a_batch_lacked_keeps_its_state(files: OfficialFiles) -> None:
    one, other = files.ours(), files.ours()
    for elmo in (one, other):
        vectors_of(elmo, [["The"], ["bank"], ["river"]])
    vectors_of(one, [["sat"]])
    first, second = vectors_of(one, BATCHES[0]), vectors_of(other, BATCHES[0])
    assert torch.allclose(first[1:], second[1:], atol=1e-6)
    assert difference(first[0], second[0]) > 0.01


def test_carried_states_can_be_forgotten(files: OfficialFiles) -> None:
    elmo = files.ours()
    first = vectors_of(elmo, SENTENCES)
    elmo.reset_states()
    assert torch.equal(vectors_of(elmo, SENTENCES), first)


def test_carried_states_are_not_kept_with_the_weights(files: OfficialFiles) -> None:
    elmo = files.ours()
    vectors_of(elmo, SENTENCES)
    assert elmo.state_dict().keys() == files.ours().state_dict().keys()


def test_carried_states_hold_no_gradients(files: OfficialFiles) -> None:
    elmo = files.ours(requires_grad=True)
    for _ in range(2):  # the second time, PyTorch would complain of a graph that was freed
        vectors_of(elmo, SENTENCES).sum().backward()


def test_reset_vectors_do_not_depend_on_batches_before(files: OfficialFiles) -> None:
    elmo = files.ours(state="reset")
    first = vectors_of(elmo, SENTENCES)
    for batch in BATCHES:
        vectors_of(elmo, batch)
    assert torch.equal(vectors_of(elmo, SENTENCES), first)
    assert torch.equal(first, vectors_of(files.ours(), SENTENCES))


def test_reset_vectors_do_not_depend_on_other_rows(files: OfficialFiles) -> None:
    elmo = files.ours(state="reset")
    alone, among = vectors_of(elmo, [["They", "sat"]]), vectors_of(elmo, BATCHES[0])
    assert torch.allclose(alone[0], among[1, :2], atol=1e-6)


def test_warm_every_sentence_starts_from_where_the_text_ended(
    warm: Elmo, files: OfficialFiles
) -> None:
    carried = files.ours()
    for sentence in TEXT:
        vectors_of(carried, [sentence])
    expected = vectors_of(carried, [SENTENCES[1]])[0]
    for _ in range(2):
        vectors = vectors_of(warm, [*SENTENCES, SENTENCES[1]])
        assert torch.allclose(vectors[1], expected, atol=1e-6)
        assert torch.allclose(vectors[2], expected, atol=1e-6)
        for batch in BATCHES:
            vectors_of(warm, batch)


def test_warm_the_text_is_read_from_zeros_each_time(warm: Elmo) -> None:
    expected = vectors_of(warm, SENTENCES)
    warm.warm_up(BATCHES[0])
    assert difference(vectors_of(warm, SENTENCES), expected) > 0.01
    warm.warm_up(TEXT)
    assert torch.equal(vectors_of(warm, SENTENCES), expected)


def test_warm_words_computed_ahead_start_from_there_too(warm: Elmo, files: OfficialFiles) -> None:
    vocabulary = vocabulary_of([SENTENCES])
    elmo = files.ours(state="warm", vocab_to_cache=vocabulary)
    elmo.warm_up(TEXT)
    (vectors,) = elmo(IDS, word_ids(SENTENCES, vocabulary))["elmo_representations"]
    assert torch.allclose(vectors, vectors_of(warm, SENTENCES), atol=1e-6)


def test_warm_before_a_text_was_read_there_is_nothing_to_start_from(files: OfficialFiles) -> None:
    with pytest.raises(ValueError, match="`warm` state is not known yet.*`warm_up`"):
        vectors_of(files.ours(state="warm"), SENTENCES)


def test_warm_the_state_is_stored_with_the_weights(warm: Elmo, files: OfficialFiles) -> None:
    expected, fresh = vectors_of(warm, SENTENCES), files.ours(state="warm")
    stored = io.BytesIO()
    torch.save(warm.state_dict(), stored)
    stored.seek(0)
    fresh.load_state_dict(torch.load(stored, weights_only=True))
    assert torch.equal(vectors_of(fresh, SENTENCES), expected)


@pytest.mark.parametrize("state", ["carry", "reset"])
def test_what_is_not_warm_does_not_warm_up(state: str, files: OfficialFiles) -> None:
    with pytest.raises(ValueError, match=f"whose `state` is `warm` warms up, not '{state}'"):
        files.ours(state=state).warm_up(TEXT)


def test_a_text_without_sentences_does_not_warm_up(files: OfficialFiles) -> None:
    with pytest.raises(ValueError, match="at least one sentence to warm up with"):
        files.ours(state="warm").warm_up([])


def by_pickle(elmo: Elmo) -> Elmo:
    return pickle.loads(pickle.dumps(elmo))


def by_torch(elmo: Elmo) -> Elmo:
    stored = io.BytesIO()
    torch.save(elmo, stored)
    stored.seek(0)
    return torch.load(stored, weights_only=False)


@pytest.mark.parametrize("state", ["carry", "reset", "warm"])
@pytest.mark.parametrize("twin_of", [copy.deepcopy, by_pickle, by_torch])
def test_a_copy_goes_on_as_its_original(
    twin_of: Callable[[Elmo], Elmo], state: str, files: OfficialFiles
) -> None:
    settings = {"state": state, "requires_grad": state == "reset"}
    elmo = files.ours(2, vocab_to_cache=vocabulary_of(BATCHES), **settings)
    if state == "warm":
        elmo.warm_up(TEXT)
    vectors_of(elmo, BATCHES[0])
    twin = twin_of(elmo)
    for batch in BATCHES:
        words = word_ids(batch, vocabulary_of(BATCHES))
        expected = elmo(batch_to_ids(batch), words)["elmo_representations"][1]
        assert torch.equal(twin(batch_to_ids(batch), words)["elmo_representations"][1], expected)


def test_a_copy_has_weights_and_states_of_its_own(files: OfficialFiles) -> None:
    elmo = files.ours()
    expected = vectors_of(elmo, SENTENCES)
    elmo.reset_states()
    twin = copy.deepcopy(elmo)
    vectors_of(twin, BATCHES[0])
    for weight in twin.parameters():
        weight.data.zero_()
    assert torch.equal(vectors_of(elmo, SENTENCES), expected)


def test_weights_load_into_another(files: OfficialFiles, tmp_path: Path) -> None:
    elmo, other = files.ours(), write_files(tmp_path, seed=31).ours(vocab_to_cache=["", "The"])
    with torch.no_grad():
        elmo.mixes[0].gamma.fill_(2.0)
    expected = vectors_of(elmo, SENTENCES)
    assert difference(vectors_of(other, SENTENCES), expected) > 0.1
    other.reset_states()
    other.load_state_dict(elmo.state_dict())
    assert torch.equal(vectors_of(other, SENTENCES), expected)
