"""One of several parallel streams of text, cut into windows."""

from typing import Iterator, List, NamedTuple, Optional

import numpy

from elmo_scratch.data.streams.stream_order import MARKS_PER_SENTENCE, StreamOrder

BEGIN, END = 0, 1
"""The marks of sentence boundaries in a stream."""

NUM_MARKS = 2
"""The word of number `n` in the corpus is `n + NUM_MARKS` in a stream."""

POSITIONS_AT_ONCE = 2**13
"""A stream reads ahead about so far: enough that NumPy's calls don't count."""


class Positions(NamedTuple):
    """
    A stretch of a stream, in two reading orders. Both begin a sentence with a mark, read its words,
    and end with the other mark; both take one sentence after the other.

    # Parameters

    left_to_right : `numpy.ndarray`
        Shape `(positions,)`: each sentence from its beginning to its end.
    right_to_left : `numpy.ndarray`
        Shape `(positions,)`: each sentence from its end to its beginning.
    predicts : `numpy.ndarray`
        Shape `(positions,)`, of bool: whether the next position is of the same sentence, so that
        it is predicted from here.
    """

    left_to_right: numpy.ndarray
    right_to_left: numpy.ndarray
    predicts: numpy.ndarray

    def between(self, start: int, end: Optional[int] = None) -> "Positions":
        """The positions from `start` on, up to `end`."""
        return Positions(*(array[start:end] for array in self))

    @property
    def size(self) -> int:
        """How many positions."""
        return len(self.left_to_right)

    @classmethod
    def cat(cls, parts: List["Positions"]) -> "Positions":
        """One stretch after the other."""
        return cls(*(numpy.concatenate(arrays) for arrays in zip(*parts)))


def read_sentences(
    tokens: numpy.ndarray, sentence_starts: numpy.ndarray, sentences: numpy.ndarray
) -> Positions:
    """
    # Parameters

    tokens : `numpy.ndarray`
        Shape `(tokens,)`: the number of the word of each token.
    sentence_starts : `numpy.ndarray`
        Shape `(sentences + 1,)`: where each sentence begins among the tokens.
    sentences : `numpy.ndarray`
        Shape `(read,)`: the numbers of the sentences to read.
    """
    starts = sentence_starts[sentences]
    lengths = sentence_starts[sentences + 1] - starts
    spans = lengths + MARKS_PER_SENTENCE
    ends = numpy.cumsum(spans)
    total = int(ends[-1]) if len(ends) else 0
    # The offset of each position within its sentence, the begin mark's being 0.
    offsets = numpy.arange(total) - numpy.repeat(ends - spans, spans)
    lengths_there, starts_there = numpy.repeat(lengths, spans), numpy.repeat(starts, spans)
    predicts = offsets <= lengths_there
    is_word = predicts & (offsets > 0)
    left_to_right = numpy.where(offsets == 0, BEGIN, END)
    right_to_left = numpy.where(offsets == 0, END, BEGIN)
    words = offsets[is_word]
    first = starts_there[is_word]
    left_to_right[is_word] = tokens[first + words - 1].astype(numpy.int64) + NUM_MARKS
    mirrored = first + lengths_there[is_word] - words
    right_to_left[is_word] = tokens[mirrored].astype(numpy.int64) + NUM_MARKS
    return Positions(left_to_right, right_to_left, predicts)


def windows(
    tokens: numpy.ndarray,
    sentence_starts: numpy.ndarray,
    order: StreamOrder,
    stream: int,
    size: int,
    skipped: int = 0,
) -> Iterator[Positions]:
    """
    Cuts a stream into windows. The last one may be shorter.

    # Parameters

    tokens, sentence_starts
        As in `read_sentences`.
    order : `StreamOrder`
        The order of the epoch.
    stream : `int`
        Which of its streams.
    size : `int`
        Positions of a window.
    skipped : `int`, optional (default = `0`)
        How many windows to leave out at the beginning. Their text isn't read.

    # Returns

    `Iterator[Positions]`
        Windows of `size + 1` positions, of which the last is the first of the next window and only
        there to be predicted.
    """
    to_skip = skipped * size
    unread = read_sentences(tokens, sentence_starts, numpy.arange(0))
    for sentences in order.sentences(stream):
        lengths = sentence_starts[sentences + 1] - sentence_starts[sentences]
        ends = numpy.cumsum(lengths + MARKS_PER_SENTENCE)
        reached = 0
        while reached < len(sentences):
            start = int(ends[reached - 1]) if reached else 0
            if start + to_skip >= ends[-1]:
                to_skip -= int(ends[-1]) - start
                break
            first = int(numpy.searchsorted(ends, start + to_skip, side="right"))
            before = int(ends[first - 1]) if first else 0
            to_skip -= before - start
            wanted = before + to_skip + POSITIONS_AT_ONCE
            reached = int(numpy.searchsorted(ends, wanted)) + 1
            read = read_sentences(tokens, sentence_starts, sentences[first:reached])
            unread = Positions.cat([unread, read.between(to_skip)])
            to_skip = 0
            num_whole = max(0, unread.size - 1) // size
            for number in range(num_whole):
                yield unread.between(number * size, (number + 1) * size + 1)
            unread = unread.between(num_whole * size)
    if unread.size:
        yield unread
