"""A text of numbers in place of words, in shards."""

from typing import List, NamedTuple, Optional, Sequence, Union

import numpy

from elmo_scratch.data.streams import (
    BEGIN,
    END,
    NUM_MARKS,
    Positions,
    StreamOrder,
    windows,
)


class TinyText(NamedTuple):
    """
    The arrays of a corpus.

    # Parameters

    tokens : `numpy.ndarray`
        Shape `(tokens,)`.
    sentence_starts : `numpy.ndarray`
        Shape `(sentences + 1,)`.
    shard_starts : `numpy.ndarray`
        Shape `(shards + 1,)`.
    """

    tokens: numpy.ndarray
    sentence_starts: numpy.ndarray
    shard_starts: numpy.ndarray

    @classmethod
    def of(cls, lengths_by_shard: Sequence[Sequence[int]]) -> "TinyText":
        """Sentences of these lengths, whose tokens are all different."""
        lengths = [length for shard in lengths_by_shard for length in shard]
        return cls(
            numpy.arange(sum(lengths), dtype=numpy.uint32),
            numpy.cumsum([0, *lengths]),
            numpy.cumsum([0, *map(len, lengths_by_shard)]),
        )

    @classmethod
    def random(cls, num_shards: int, num_sentences: int) -> "TinyText":
        """Shards of up to so many sentences of up to 30 tokens."""
        generator = numpy.random.default_rng(13)
        return cls.of(
            [
                generator.integers(1, 30, generator.integers(1, num_sentences)).tolist()
                for _ in range(num_shards)
            ]
        )

    def order(
        self, num_streams: int, seed: Optional[int] = None, shuffles_sentences: bool = False
    ) -> StreamOrder:
        """An order of its sentences."""
        return StreamOrder(
            self.sentence_starts,
            self.shard_starts,
            num_streams,
            None if seed is None else numpy.random.SeedSequence(seed),
            shuffles_sentences,
        )

    def sentence(self, number: int) -> List[int]:
        """The words of a sentence, as in a stream."""
        start, end = self.sentence_starts[number : number + 2]
        return (self.tokens[start:end].astype(int) + NUM_MARKS).tolist()

    def windows(
        self,
        order: StreamOrder,
        stream: int,
        size: Union[int, numpy.ndarray],
        skipped: int = 0,
    ) -> List[Positions]:
        """The windows of a stream, of one size or of several."""
        sizes = numpy.full(order.num_positions(stream), size) if isinstance(size, int) else size
        return list(windows(self.tokens, self.sentence_starts, order, stream, sizes, skipped))

    def left_to_right(self, numbers: Sequence[int]) -> List[int]:
        """What the left-to-right direction reads of these sentences."""
        return [word for number in numbers for word in (BEGIN, *self.sentence(number), END)]

    def right_to_left(self, numbers: Sequence[int]) -> List[int]:
        """What the right-to-left direction reads of these sentences."""
        return [word for number in numbers for word in (END, *self.sentence(number)[::-1], BEGIN)]
