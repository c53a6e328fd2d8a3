"""The characters of a corpus's words."""

from typing import Tuple

import numpy

from elmo_scratch.alphabet import BEGIN_WORD, END_WORD, PADDING_ID, sentence_marks
from elmo_scratch.data.streams.stream import BEGIN, END, NUM_MARKS


class Spelling:
    """
    Spells words of a corpus, as `alphabet.character_ids` does, many at a time.

    # Parameters

    text : `numpy.ndarray`
        Of bytes: the UTF-8 forms of all words, end to end.
    starts : `numpy.ndarray`
        Shape `(words + 1,)`: where each word begins in `text`.
    max_characters : `int`
        How many ids a word has.
    marks : `Tuple[numpy.ndarray, numpy.ndarray]`
        The numbers of the words that are written like the marks of the beginning and the end of a
        sentence, and stand for them.
    """

    def __init__(
        self,
        text: numpy.ndarray,
        starts: numpy.ndarray,
        max_characters: int,
        marks: Tuple[numpy.ndarray, numpy.ndarray],
    ) -> None:
        self._text = text
        self._starts = starts
        self._max_characters = max_characters
        self._marks = [
            (numpy.append(words + NUM_MARKS, mark), numpy.array(spelled))
            for words, mark, spelled in zip(marks, (BEGIN, END), sentence_marks(max_characters))
        ]

    def of(self, numbers: numpy.ndarray) -> numpy.ndarray:
        """
        # Parameters

        numbers : `numpy.ndarray`
            Shape `(words,)`, as in a stream.

        # Returns

        `numpy.ndarray`
            Shape `(words, characters)`: ids as in a batch.
        """
        words = numpy.maximum(numbers - NUM_MARKS, 0)
        starts = self._starts[words]
        lengths = numpy.minimum(self._starts[words + 1] - starts, self._max_characters - 2)
        ids = numpy.full((len(numbers), self._max_characters), PADDING_ID, dtype=numpy.int64)
        ids[:, 0] = BEGIN_WORD + 1
        row = numpy.repeat(numpy.arange(len(numbers)), lengths)
        offset = numpy.arange(len(row)) - numpy.repeat(numpy.cumsum(lengths) - lengths, lengths)
        ids[row, offset + 1] = self._text[starts[row] + offset].astype(numpy.int64) + 1
        ids[numpy.arange(len(numbers)), lengths + 1] = END_WORD + 1
        for written_so, spelled in self._marks:
            ids[numpy.isin(numbers, written_so)] = spelled
        return ids
