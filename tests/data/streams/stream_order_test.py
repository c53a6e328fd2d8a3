import tracemalloc
from typing import List

import numpy
import pytest

from elmo_scratch.data import streams
from elmo_scratch.data.streams import StreamOrder
from tests.data.streams.tiny_text import TinyText

TEXT = TinyText.random(num_shards=7, num_sentences=40)

each_order = pytest.mark.parametrize(
    "seed, shuffles_sentences", [(None, False), (5, False), (5, True)]
)


def sentences_of(order: StreamOrder, stream: int) -> List[int]:
    return [int(number) for part in order.sentences(stream) for number in part]


@each_order
@pytest.mark.parametrize("num_streams", [1, 3, 16])
def test_every_sentence_is_in_one_stream(
    seed: int, shuffles_sentences: bool, num_streams: int
) -> None:
    order = TEXT.order(num_streams, seed, shuffles_sentences)
    read = [number for stream in range(num_streams) for number in sentences_of(order, stream)]
    assert sorted(read) == list(range(len(TEXT.sentence_starts) - 1))


@each_order
def test_streams_are_as_long_as_they_say_and_nearly_equal(
    seed: int, shuffles_sentences: bool
) -> None:
    order = TEXT.order(8, seed, shuffles_sentences)
    lengths = numpy.diff(TEXT.sentence_starts) + 2
    sizes = [sum(lengths[sentences_of(order, stream)]) for stream in range(8)]
    assert sizes == [order.num_positions(stream) for stream in range(8)]
    # Each end is at most half a sentence away from where it should be.
    assert max(sizes) - min(sizes) <= 2 * lengths.max()


def test_without_a_seed_the_streams_follow_the_text() -> None:
    order = TEXT.order(4)
    read = [number for stream in range(4) for number in sentences_of(order, stream)]
    assert read == list(range(len(TEXT.sentence_starts) - 1))


def test_a_seed_draws_the_order_of_the_shards_and_leaves_their_texts_alone() -> None:
    read = sentences_of(TEXT.order(1, seed=5), 0)
    shard_of = numpy.searchsorted(TEXT.shard_starts, read, side="right") - 1
    shards = list(dict.fromkeys(shard_of.tolist()))
    assert shards != sorted(shards)
    starts = TEXT.shard_starts
    whole = [number for shard in shards for number in range(starts[shard], starts[shard + 1])]
    assert read == whole
    assert sentences_of(TEXT.order(1, seed=5), 0) == read
    assert sentences_of(TEXT.order(1, seed=6), 0) != read


def test_a_seed_can_draw_the_order_of_sentences_within_their_shards() -> None:
    read = sentences_of(TEXT.order(1, 5, shuffles_sentences=True), 0)
    shard_of = (numpy.searchsorted(TEXT.shard_starts, read, side="right") - 1).tolist()
    assert shard_of == sorted(shard_of, key=list(dict.fromkeys(shard_of)).index)
    assert read != sentences_of(TEXT.order(1, 5), 0)


def test_empty_shards_are_passed_over() -> None:
    text = TinyText.of([[], [3, 4], [], [2], []])
    for num_streams in (1, 2, 3):
        order = text.order(num_streams)
        read = [sentences_of(order, stream) for stream in range(num_streams)]
        assert sum(read, []) == [0, 1, 2]
        assert all(read)


def test_one_long_sentence_may_leave_a_stream_empty() -> None:
    order = TinyText.of([[100, 1]]).order(3)
    assert [sentences_of(order, stream) for stream in range(3)] == [[], [0], [1]] or [
        order.num_positions(stream) for stream in range(3)
    ].count(0) == 1


@each_order
@pytest.mark.parametrize("at_once", [1, 3, 50])
def test_it_is_the_same_in_parts_of_any_size(
    seed: int, shuffles_sentences: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = TEXT.order(8, seed, shuffles_sentences)
    read = [sentences_of(whole, stream) for stream in range(8)]
    monkeypatch.setattr(streams, "SENTENCES_AT_ONCE", at_once)
    order = TEXT.order(8, seed, shuffles_sentences)
    assert [sentences_of(order, stream) for stream in range(8)] == read
    assert [order.num_positions(stream) for stream in range(8)] == [
        whole.num_positions(stream) for stream in range(8)
    ]
    assert all(len(part) <= at_once for stream in range(8) for part in order.sentences(stream))


def test_memory_is_given_back_after_each_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SENTENCES_AT_ONCE", 10)
    released = []
    StreamOrder(
        TEXT.sentence_starts, TEXT.shard_starts, 1000, release=lambda: released.append(True)
    )
    num_sentences = numpy.diff(TEXT.shard_starts)
    # The last stream may begin before the last part.
    assert sum(-(-num_sentences // 10)) - 1 <= len(released) <= sum(-(-num_sentences // 10))


def test_memory_does_not_grow_with_the_corpus() -> None:
    text = TinyText.of([[1] * 500_000] * 2)
    tracemalloc.start()
    try:
        order = text.order(16, 5, shuffles_sentences=True)
        for stream in range(16):
            next(iter(order.sentences(stream)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The numbers of all sentences would be 8 MB.
    assert peak < 4e6
