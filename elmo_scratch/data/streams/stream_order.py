"""Which sentences each of several parallel streams reads, and in which order."""

from functools import lru_cache
from typing import Iterator, NamedTuple, Optional

import numpy

MARKS_PER_SENTENCE = 2
"""A begin and an end mark."""


class Place(NamedTuple):
    """
    A sentence, by its place in the order of an epoch.

    # Parameters

    shard : `int`
        The place of its shard in the order of the epoch.
    sentence : `int`
        Its place in the order of the shard.
    """

    shard: int
    sentence: int


class StreamOrder:
    """
    The order of all sentences of a corpus in one epoch, cut into streams of as equal lengths as
    whole sentences allow. Each stream reads a stretch of the order, so that without shuffling of
    sentences texts stay in their order.

    # Parameters

    sentence_starts : `numpy.ndarray`
        Shape `(sentences + 1,)`: where each sentence begins among the tokens.
    shard_starts : `numpy.ndarray`
        Shape `(shards + 1,)`: the first sentence of each shard.
    num_streams : `int`
        How many streams.
    seed : `numpy.random.SeedSequence`, optional (default = `None`)
        Draws the order of the epoch. `None` keeps the corpus's own order.
    shuffles_sentences : `bool`, optional (default = `False`)
        Whether the seed also draws the order of the sentences within each shard.
    """

    def __init__(
        self,
        sentence_starts: numpy.ndarray,
        shard_starts: numpy.ndarray,
        num_streams: int,
        seed: Optional[numpy.random.SeedSequence] = None,
        shuffles_sentences: bool = False,
    ) -> None:
        self._sentence_starts = sentence_starts
        self._shard_starts = shard_starts
        num_shards = len(shard_starts) - 1
        self._shards = numpy.arange(num_shards)
        self._seeds = None
        if seed is not None:
            of_shards, *of_sentences = seed.spawn(1 + num_shards)
            numpy.random.default_rng(of_shards).shuffle(self._shards)
            self._seeds = of_sentences if shuffles_sentences else None
        # In positions: tokens and the marks around each sentence. Shape: (shards,)
        sizes = numpy.diff(sentence_starts[shard_starts])
        sizes += MARKS_PER_SENTENCE * numpy.diff(shard_starts)
        self._shard_ends = numpy.cumsum(sizes[self._shards])
        self._sentences_of = lru_cache(maxsize=num_streams + 1)(self._order_of_shard)
        total = int(self._shard_ends[-1])
        bounds = [self._place_at(total * number // num_streams) for number in range(num_streams)]
        self._bounds = [*bounds, Place(num_shards, 0)]

    def sentences(self, stream: int) -> Iterator[numpy.ndarray]:
        """The numbers of the sentences that a stream reads, shard by shard."""
        first, end = self._bounds[stream], self._bounds[stream + 1]
        for shard in range(first.shard, end.shard + (end.sentence > 0)):
            sentences = self._sentences_of(shard)
            begin = first.sentence if shard == first.shard else 0
            yield sentences[begin : end.sentence if shard == end.shard else None]

    def num_positions(self, stream: int) -> int:
        """How long a stream is, in positions."""
        return self._position_of(self._bounds[stream + 1]) - self._position_of(self._bounds[stream])

    def _order_of_shard(self, shard: int) -> numpy.ndarray:
        """The numbers of the sentences of a shard, in the order of the epoch."""
        number = self._shards[shard]
        sentences = numpy.arange(self._shard_starts[number], self._shard_starts[number + 1])
        if self._seeds is not None:
            numpy.random.default_rng(self._seeds[number]).shuffle(sentences)
        return sentences

    def _ends_in_shard(self, shard: int) -> numpy.ndarray:
        """Where each sentence of a shard ends, in positions from the shard's beginning."""
        sentences = self._sentences_of(shard)
        lengths = self._sentence_starts[sentences + 1] - self._sentence_starts[sentences]
        return numpy.cumsum(lengths + MARKS_PER_SENTENCE)

    def _place_at(self, position: int) -> Place:
        """The sentence that begins nearest to a position of the epoch."""
        shard = int(numpy.searchsorted(self._shard_ends, position, side="right"))
        before = int(self._shard_ends[shard - 1]) if shard else 0
        starts = numpy.concatenate([[0], self._ends_in_shard(shard)])
        after = int(numpy.searchsorted(starts, position - before))
        is_nearer_before = after > 0 and 2 * (position - before) < starts[after - 1] + starts[after]
        sentence = after - 1 if is_nearer_before else after
        if sentence == len(starts) - 1:
            return Place(shard + 1, 0)
        return Place(shard, sentence)

    def _position_of(self, place: Place) -> int:
        """Where a sentence begins, in positions of the epoch."""
        before = int(self._shard_ends[place.shard - 1]) if place.shard else 0
        if place.sentence == 0:
            return before
        return before + int(self._ends_in_shard(place.shard)[place.sentence - 1])
