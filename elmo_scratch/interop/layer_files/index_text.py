"""The text of the JSON map from sentences to the keys of their data sets."""

import json
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Iterable, Iterator, Tuple

import numpy


class IndexText:
    """
    The text, in a temporary file. In memory there are 17 bytes a sentence.

    Made by `IndexText.of`.
    """

    def __init__(self, entries: IO[bytes], is_kept: numpy.ndarray) -> None:
        self._entries = entries
        self._is_kept = is_kept
        self.size = sum(map(len, self.pieces()))

    @classmethod
    @contextmanager
    def of(cls, sentences: Iterable[Tuple[str, str]], folder: Path) -> Iterator["IndexText"]:
        """
        The text, for the block.

        # Parameters

        sentences : `Iterable[Tuple[str, str]]`
            Sentences and their keys. Of equal sentences the last one's key counts.
        folder : `Path`
            Where there is room for the text.
        """
        with TemporaryFile(dir=folder) as entries:
            digests = bytearray()
            for sentence, key in sentences:
                name = json.dumps(sentence).encode()
                entries.write(b"%s: %s\n" % (name, json.dumps(key).encode()))
                digests += blake2b(name, digest_size=16).digest()
            yield cls(entries, is_last(numpy.frombuffer(digests, "uint64").reshape(-1, 2)))

    def pieces(self) -> Iterator[bytes]:
        """The text in pieces, `self.size` bytes together."""
        yield b"{"
        separator = b""
        self._entries.seek(0)
        for entry, is_kept in zip(self._entries, self._is_kept):
            if is_kept:
                yield separator + entry[:-1]
                separator = b", "
        yield b"}"


def is_last(digests: numpy.ndarray) -> numpy.ndarray:
    """
    # Parameters

    digests : `numpy.ndarray`
        Shape `(n, 2)`, of the type `uint64`.

    # Returns

    `numpy.ndarray`
        Shape `(n,)`: whether no later one is equal.
    """
    result = numpy.ones(len(digests), dtype=bool)
    # In groups by their first byte: to sort all at once would take as much memory again.
    first_bytes = digests.view("uint8").reshape(-1, 16)[:, 0]
    for group in range(256):
        (places,) = numpy.nonzero(first_bytes == group)
        order = numpy.lexsort((digests[places, 1], digests[places, 0]))  # equal ones stay in order
        ordered = digests[places[order]]
        is_repeated = (ordered[:-1] == ordered[1:]).all(axis=-1)
        result[places[order[:-1][is_repeated]]] = False
    return result
