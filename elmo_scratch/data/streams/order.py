"""
Orders the sentences in streams: at random, for any number of them, without memory for the order.
"""

from typing import Callable, Iterator, List, NamedTuple, Optional

import numpy

NUM_ROUNDS = 6
"""Four are enough if both halves are large (Luby and Rackoff 1988); shards may be small."""


class RandomOrder:
    """
    A random order of the numbers below `size`, each part of which is computed on demand: a Feistel
    network over the next larger power of four, applied again while its result is out of range.

    # Source

    Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains": the cycle-walking cipher.
    """

    def __init__(self, size: int, seed: numpy.random.SeedSequence) -> None:
        self._size = size
        self._half = numpy.uint64(max(1, -(-max(0, size - 1).bit_length() // 2)))  # in bits
        self._mask = (numpy.uint64(1) << self._half) - numpy.uint64(1)
        self._keys = seed.generate_state(NUM_ROUNDS, numpy.uint64)

    def at(self, places: numpy.ndarray) -> numpy.ndarray:
        """The numbers at places of the order. Shape `(places,)` → `(places,)`, int64."""
        numbers = self._through(places.astype(numpy.uint64))
        outside = numpy.flatnonzero(numbers >= self._size)
        while len(outside):
            numbers[outside] = self._through(numbers[outside])
            outside = outside[numbers[outside] >= self._size]
        return numbers.astype(numpy.int64)

    def _through(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """Permutes the network's domain: each uint64 number becomes another of them."""
        left, right = numbers >> self._half, numbers & self._mask
        for key in self._keys:
            left, right = right, left ^ (_scattered(right + key) & self._mask)
        return (left << self._half) | right


def _scattered(numbers: numpy.ndarray) -> numpy.ndarray:
    """Mixes uint64 numbers so that each bit depends on all bits (the last step of SplitMix64)."""
    numbers = (numbers ^ (numbers >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> numpy.uint64(31))


MARKS_PER_SENTENCE = 2
"""A begin and an end mark."""

SENTENCES_AT_ONCE = 2**14
"""Sentences of an order that are handled at once, so that memory does not grow with the corpus."""


class Place(NamedTuple):
    """
    A sentence in the order of an epoch: the place of its shard there, its own place in the order of
    the shard, and the position of the epoch at which it begins.
    """

    shard: int
    sentence: int
    position: int


class StreamOrder:
    """
    The order of all sentences of a corpus in one epoch, cut into streams of as equal lengths as
    whole sentences allow. Each stream reads a stretch of the order, so texts stay in their order
    unless sentences are shuffled.

    # Parameters

    sentence_starts : `numpy.ndarray`
        Shape `(sentences + 1,)`: the offset of each sentence among the tokens.
    shard_starts : `numpy.ndarray`
        Shape `(shards + 1,)`: the first sentence of each shard.
    num_streams : `int`
        How many streams.
    seed : `numpy.random.SeedSequence`, optional (default = `None`)
        Draws the order of the epoch. `None` keeps the corpus's own order.
    shuffles_sentences : `bool`, optional (default = `False`)
        Whether the seed also draws the order of the sentences within each shard.
    release : `Callable[[], None]`, optional (default = nothing is done)
        Releases the memory of what was read from disk. The constructor calls it after each part of
        `sentence_starts` that it reads.
    """

    def __init__(
        self,
        sentence_starts: numpy.ndarray,
        shard_starts: numpy.ndarray,
        num_streams: int,
        seed: Optional[numpy.random.SeedSequence] = None,
        shuffles_sentences: bool = False,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self._sentence_starts = sentence_starts
        self._shard_starts = shard_starts
        self._release = release
        num_shards = len(shard_starts) - 1
        self._shards = numpy.arange(num_shards)
        self._seeds = None
        if seed is not None:
            of_shards, *of_sentences = seed.spawn(1 + num_shards)
            numpy.random.default_rng(of_shards).shuffle(self._shards)
            self._seeds = of_sentences if shuffles_sentences else None
        # Sizes in positions: tokens and the marks around each sentence. Shape: (shards,)
        sizes = numpy.diff(sentence_starts[shard_starts])
        sizes += MARKS_PER_SENTENCE * numpy.diff(shard_starts)
        self._shard_ends = numpy.cumsum(sizes[self._shards])
        total = int(self._shard_ends[-1])
        wanted = numpy.arange(num_streams) * total // num_streams
        self._bounds = [*self._places_at(wanted), Place(num_shards, 0, total)]

    def sentences(self, stream: int) -> Iterator[numpy.ndarray]:
        """Yields the numbers of the sentences that a stream reads, part by part."""
        first, end = self._bounds[stream], self._bounds[stream + 1]
        for shard in range(first.shard, end.shard + (end.sentence > 0)):
            begin = first.sentence if shard == first.shard else 0
            yield from self._of_shard(shard, begin, end.sentence if shard == end.shard else None)

    def num_positions(self, stream: int) -> int:
        """The length of a stream in positions."""
        return self._bounds[stream + 1].position - self._bounds[stream].position

    def _of_shard(
        self, shard: int, begin: int = 0, end: Optional[int] = None
    ) -> Iterator[numpy.ndarray]:
        """Yields the numbers of a shard's sentences in the order of the epoch, part by part."""
        number = self._shards[shard]
        first = int(self._shard_starts[number])
        size = int(self._shard_starts[number + 1]) - first
        order = None if self._seeds is None else RandomOrder(size, self._seeds[number])
        end = size if end is None else end
        for start in range(begin, end, SENTENCES_AT_ONCE):
            places = numpy.arange(start, min(start + SENTENCES_AT_ONCE, end))
            yield first + (places if order is None else order.at(places))

    def _places_at(self, positions: numpy.ndarray) -> List[Place]:
        """The sentences that begin nearest to ascending positions of the epoch."""
        found = []
        shards = numpy.searchsorted(self._shard_ends, positions, side="right")
        for shard in numpy.unique(shards).tolist():
            wanted = positions[shards == shard]
            reached = int(self._shard_ends[shard - 1]) if shard else 0
            passed = 0
            for sentences in self._of_shard(shard):
                lengths = self._sentence_starts[sentences + 1] - self._sentence_starts[sentences]
                # The start of each sentence of the part, and the end of the last one.
                spans = numpy.concatenate([[reached], lengths + MARKS_PER_SENTENCE])
                starts = numpy.cumsum(spans)
                reached = int(starts[-1])
                is_here = wanted <= reached
                for position in wanted[is_here]:
                    nearest = _nearest(starts, int(position))
                    found.append(Place(shard, passed + nearest, int(starts[nearest])))
                wanted, passed = wanted[~is_here], passed + len(sentences)
                self._release()
                if not len(wanted):
                    break
        return found


def _nearest(starts: numpy.ndarray, position: int) -> int:
    """The place of the number nearest to `position` among ascending numbers."""
    after = int(numpy.searchsorted(starts, position))
    is_nearer_before = after > 0 and 2 * position < starts[after - 1] + starts[after]
    return after - 1 if is_nearer_before else after
