from typing import List, NamedTuple

import numpy
import pytest

from elmo_scratch.data import streams
from elmo_scratch.data.streams import Positions, read_sentences
from tests.data.streams.tiny_text import TinyText

TEXT = TinyText.random(num_shards=5, num_sentences=60)
LONG = TinyText.of([[20_000, 3], [1, 9_000, 7, 30_000]])
"""With sentences that are longer than what is read at once."""

SHORT = TinyText.random(num_shards=5, num_sentences=20)
"""Short enough to begin at each of its windows."""

MANY = TinyText.random(num_shards=2, num_sentences=6000)
"""Whose streams are longer than what is read at once, in short sentences."""


class Read(NamedTuple):
    """What the windows of a stream hold, without what is only there to be predicted."""

    left_to_right: List[int]
    right_to_left: List[int]
    predicts: List[bool]


def joined(parts: List[Positions], size: int) -> Read:
    return Read(*(sum((array[:size].tolist() for array in field), []) for field in zip(*parts)))


def test_a_sentence_is_read_in_both_orders_between_its_marks() -> None:
    text = TinyText.of([[3, 1]])
    read = read_sentences(text.tokens, text.sentence_starts, numpy.array([0, 1]))
    # 0 and 1 are the marks, 2 the first word.
    assert read.left_to_right.tolist() == [0, 2, 3, 4, 1, 0, 5, 1]
    assert read.right_to_left.tolist() == [1, 4, 3, 2, 0, 1, 5, 0]
    assert read.predicts.tolist() == [True] * 4 + [False] + [True] * 2 + [False]


@pytest.mark.parametrize("text", [TEXT, LONG])
@pytest.mark.parametrize("size", [1, 7, 20, 5000])
@pytest.mark.parametrize("num_streams", [1, 3])
def test_windows_hold_the_whole_stream_in_its_order(
    text: TinyText, size: int, num_streams: int
) -> None:
    order = text.order(num_streams, seed=5, shuffles_sentences=True)
    for place in range(num_streams):
        numbers = [int(number) for part in order.sentences(place) for number in part]
        parts = text.windows(order, place, size)
        read = joined(parts, size)
        assert read.left_to_right == text.left_to_right(numbers)
        assert read.right_to_left == text.right_to_left(numbers)
        assert len(parts) == -(-order.num_positions(place) // size)
        assert all(part.size == size + 1 for part in parts[:-1])


def test_each_window_but_the_last_ends_with_the_beginning_of_the_next() -> None:
    parts = TEXT.windows(TEXT.order(1), 0, 20)
    for part, following in zip(parts, parts[1:]):
        assert part.left_to_right[-1] == following.left_to_right[0]
        assert part.right_to_left[-1] == following.right_to_left[0]
    assert not parts[-1].predicts[-1]


@pytest.mark.parametrize("text", [TEXT, LONG, MANY])
def test_windows_can_be_left_out_at_the_beginning(text: TinyText) -> None:
    order = text.order(2, seed=5)
    whole = text.windows(order, 1, 20)
    for skipped in (0, 1, 2, len(whole) // 2, len(whole) - 1, len(whole)):
        rest = text.windows(order, 1, 20, skipped)
        assert len(rest) == len(whole) - skipped
        for ours, expected in zip(rest, whole[skipped:]):
            assert all(numpy.array_equal(*pair) for pair in zip(ours, expected))


@pytest.mark.parametrize("positions", [16, 100])
@pytest.mark.parametrize("sentences", [3, 10, 1000])
def test_nothing_is_lost_wherever_reading_ends(
    positions: int, sentences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = SHORT.order(2, seed=3, shuffles_sentences=True)
    whole = SHORT.windows(order, 1, 5)
    monkeypatch.setattr(streams, "POSITIONS_AT_ONCE", positions)
    monkeypatch.setattr(streams, "SENTENCES_AT_ONCE", sentences)
    for skipped in range(len(whole) + 1):
        rest = SHORT.windows(order, 1, 5, skipped)
        assert len(rest) == len(whole) - skipped
        for ours, expected in zip(rest, whole[skipped:]):
            assert all(map(numpy.array_equal, ours, expected))


def test_windows_may_have_different_sizes() -> None:
    order = MANY.order(1, seed=5)
    total = order.num_positions(0)
    sizes = numpy.random.default_rng(3).integers(1, 40, total // 10)
    whole = MANY.windows(order, 0, total)[0]
    parts = MANY.windows(order, 0, sizes)
    ends = numpy.cumsum(sizes)
    assert len(parts) == int(numpy.searchsorted(ends, total)) + 1
    for part, size, end in zip(parts, sizes, ends):
        expected = whole.between(end - size, end + 1)
        assert all(map(numpy.array_equal, part, expected))
    for skipped in (1, 2, len(parts) // 2, len(parts) - 1, len(parts)):
        rest = MANY.windows(order, 0, sizes, skipped)
        assert len(rest) == len(parts) - skipped
        for ours, known in zip(rest, parts[skipped:]):
            assert all(map(numpy.array_equal, ours, known))
