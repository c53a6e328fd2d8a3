"""Words that stay on the disk."""

from pathlib import Path
from typing import Iterator, List, Sequence

import numpy

TEXT, STARTS, COUNTS = "words.bin", "word_starts.bin", "word_counts.bin"
_WORDS_AT_ONCE = 2**16


class WordTable(Sequence[str]):
    """
    The distinct words of a corpus, by falling frequency and, where that is equal, in alphabetical
    order. They lie in memory-mapped files; a word becomes a string when it is asked for.

    # Parameters

    folder : `Path`
        Where `write_words` put them.
    """

    def __init__(self, folder: Path) -> None:
        self.text = numpy.memmap(folder / TEXT, dtype=numpy.uint8, mode="r")
        """The UTF-8 forms of all words, end to end."""
        self.starts = numpy.memmap(folder / STARTS, dtype="<i8", mode="r")
        """Shape `(words + 1,)`: where each word begins in `text`."""
        self.counts = numpy.memmap(folder / COUNTS, dtype="<i8", mode="r")
        """Shape `(words,)`: how often each word occurs."""

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, number: int) -> str:  # type: ignore[override]
        if not -len(self) <= number < len(self):
            raise IndexError(f"there are {len(self)} words, but number {number} was asked for")
        number %= len(self)
        return self.text[self.starts[number] : self.starts[number + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _WORDS_AT_ONCE):
            starts = self.starts[first : first + _WORDS_AT_ONCE + 1].tolist()
            text = self.text[starts[0] : starts[-1]].tobytes()
            for start, end in zip(starts, starts[1:]):
                yield text[start - starts[0] : end - starts[0]].decode("utf-8")

    def lengths(self) -> numpy.ndarray:
        """Shape `(words,)`: how many bytes each word has in UTF-8."""
        return numpy.diff(self.starts)


def write_words(words: List[str], counts: numpy.ndarray, folder: Path) -> None:
    """
    Writes what `WordTable` reads.

    # Parameters

    words : `List[str]`
        Distinct words in their order, none of them empty.
    counts : `numpy.ndarray`
        Shape `(words,)`.
    folder : `Path`
        Where to.
    """
    end = 0
    with open(folder / TEXT, "wb") as text, open(folder / STARTS, "wb") as starts:
        starts.write(numpy.zeros(1, dtype="<i8").tobytes())
        for first in range(0, len(words), _WORDS_AT_ONCE):
            encoded = [word.encode("utf-8") for word in words[first : first + _WORDS_AT_ONCE]]
            text.write(b"".join(encoded))
            ends = end + numpy.cumsum([len(word) for word in encoded], dtype="<i8")
            starts.write(ends.tobytes())
            end = int(ends[-1])
    with open(folder / COUNTS, "wb") as file:
        file.write(counts.astype("<i8").tobytes())
