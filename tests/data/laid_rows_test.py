from typing import Any, List

import pytest

from elmo_scratch.data.spelling import split_ragged_batch, warm_up_batches


@pytest.mark.parametrize(
    "lengths, groups",
    [
        ([], []),
        ([3], [[3]]),
        ([90, 1, 1, 1], [[90], [1, 1, 1]]),
        ([1, 2, 90, 1], [[1, 2], [90], [1]]),
        ([3, 3, 3], [[3, 3], [3]]),
        ([8, 1], [[8], [1]]),
        ([0, 0, 0, 0, 0, 0, 0], [[0] * 5, [0] * 2]),
    ],
)
def test_a_group_has_no_more_than_ten_positions_or_one_sentence(
    lengths: List[int], groups: List[List[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_scratch.data.spelling.MAX_POSITIONS_LAID", 10)
    assert [lengths[group] for group in split_ragged_batch(lengths)] == groups


def test_a_text_to_warm_up_with_is_read_many_sentences_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("elmo_scratch.data.spelling.MAX_POSITIONS_LAID", 300)
    short, long = ("one", "word"), ["long"] * 290
    batches = list(warm_up_batches(iter([short] * 70 + [long, short])))
    assert [len(batch) for batch in batches] == [64, 6, 1, 1]
    assert [sentence for batch in batches for sentence in batch] == (
        [["one", "word"]] * 70 + [long, ["one", "word"]]
    )


@pytest.mark.parametrize("wrong", ["A text", {"a", "set"}, ["words", 3]])
def test_what_is_no_sequence_of_words_does_not_warm_up(wrong: Any) -> None:
    batches = warm_up_batches([["fine"]] * 70 + [wrong])
    assert len(next(batches)) == 64
    with pytest.raises(
        ValueError, match="expected sentence 70 to be a sequence of words, but got "
    ):
        next(batches)
