"""The text of the JSON map from sentences to the keys of their data sets."""

import json
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Iterable, Iterator, Tuple

import numpy

DIGEST_SIZE = 16
"""Bytes that stand for a sentence: among so many no two sentences will ever share theirs."""

GROUPS = 16
"""Digests are compared group by group, one group in memory at a time."""

READ_AT_ONCE = 2**16
"""Digests, 1 MiB of them."""


class IndexText:
    """
    The text, in a temporary file. In memory there are few bytes a sentence.

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
        with TemporaryFile(dir=folder) as entries, TemporaryFile(dir=folder) as digests:
            for sentence, key in sentences:
                name = json.dumps(sentence).encode()
                entries.write(b"%s: %s\n" % (name, json.dumps(key).encode()))
                digests.write(blake2b(name, digest_size=DIGEST_SIZE).digest())
            yield cls(entries, is_last(digests))

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


def is_last(digests: IO[bytes]) -> numpy.ndarray:
    """
    # Parameters

    digests : `IO[bytes]`
        `n` digests, one after the other, as they were written: it stands at its end.

    # Returns

    `numpy.ndarray`
        Shape `(n,)`: whether no later one is equal.
    """
    result = numpy.ones(digests.tell() // DIGEST_SIZE, dtype=bool)
    for group in range(GROUPS):
        places, halves = _of_group(digests, group)
        order = numpy.lexsort((halves[:, 1], halves[:, 0]))  # equal ones stay in order
        ordered = halves[order]
        is_repeated = (ordered[:-1] == ordered[1:]).all(axis=-1)
        result[places[order[:-1][is_repeated]]] = False
    return result


def _of_group(digests: IO[bytes], group: int) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """The places of the digests of a group, shape `(n,)`, and their halves, shape `(n, 2)`."""
    places, chosen = [numpy.empty(0, "int64")], [numpy.empty((0, 2), "uint64")]
    start = 0
    digests.seek(0)
    while piece := digests.read(READ_AT_ONCE * DIGEST_SIZE):
        halves = numpy.frombuffer(piece, "uint64").reshape(-1, 2)
        (among,) = numpy.nonzero(halves[:, 0] % GROUPS == group)
        places.append(start + among)
        chosen.append(halves[among])
        start += len(halves)
    return numpy.concatenate(places), numpy.concatenate(chosen)
