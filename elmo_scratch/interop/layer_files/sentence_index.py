"""Finds the sentences of a file, be they millions."""

import json
import re
from array import array
from hashlib import blake2b
from typing import Iterable, Iterator, Optional, Tuple

import numpy

STRING = rb'"([^"\\]*(?:\\.[^"\\]*)*)"'
ENTRY = re.compile(rb"\s*([{,])\s*%s\s*:\s*%s" % (STRING, STRING), re.DOTALL)
"""An entry of a JSON map from strings to strings, and what stands before it."""

LONGEST_ENTRY = 2**25
"""Bytes of a sentence and its key in JSON. To read them takes up to 30 times as many."""


class SentenceIndex:
    """
    Sentences and their keys, in some 50 bytes of memory a sentence.

    # Parameters

    entries : `Iterable[Tuple[str, str]]`
        The sentences and keys. Of equal sentences the last one is found.
    """

    def __init__(self, entries: Iterable[Tuple[str, str]]) -> None:
        digests, keys, ends = bytearray(), bytearray(), array("q", [0])
        for sentence, key in entries:
            digests += _digest(sentence)
            keys += key.encode("utf-8", "surrogatepass")
            ends.append(len(keys))
        halves = numpy.frombuffer(digests, "uint64").reshape(-1, 2)
        self._places = numpy.lexsort((halves[:, 1], halves[:, 0]))  # equal ones stay in order
        self._digests = halves[self._places]
        self._keys = bytes(keys)
        self._ends = numpy.array(ends)

    def __len__(self) -> int:
        return len(self._places)

    def find(self, sentence: str) -> Optional[int]:
        """The place of a sentence among the entries; `None` where it isn't one."""
        first, second = numpy.frombuffer(_digest(sentence), "uint64")
        start = numpy.searchsorted(self._digests[:, 0], first, "left")
        stop = numpy.searchsorted(self._digests[:, 0], first, "right")
        (equal,) = numpy.nonzero(self._digests[start:stop, 1] == second)
        return int(self._places[start + equal[-1]]) if len(equal) else None

    def key(self, place: int) -> str:
        """The key of the entry at a place."""
        start, stop = self._ends[place : place + 2]
        return self._keys[start:stop].decode("utf-8", "surrogatepass")


def entries_of(text: Iterable[bytes]) -> Iterator[Tuple[str, str]]:
    """
    Yields the entries of a JSON map from strings to strings.

    # Parameters

    text : `Iterable[bytes]`
        The map, in pieces.

    # Raises

    ValueError
        If it is no such map.
    """
    pieces = iter(text)
    buffer, position, separator = b"", 0, b"{"
    while True:
        match = ENTRY.match(buffer, position)
        if match and match[1] == separator:
            yield _unescaped(match[2]), _unescaped(match[3])
            position, separator = match.end(), b","
        elif len(buffer) - position > LONGEST_ENTRY:
            break
        elif more := _take(pieces, len(buffer) - position):
            buffer, position = buffer[position:] + more, 0
        else:
            break
    end = b"".join(buffer[position:].split())
    if end != (b"{}" if separator == b"{" else b"}"):
        raise ValueError("expected a JSON map from strings to strings")


def _take(pieces: Iterator[bytes], size: int) -> bytes:
    """At least so many bytes, and at least one, if there are still as many."""
    # Twice as many as last time, where an entry is long: what it begins with is read anew.
    taken = bytearray(next(pieces, b""))
    while len(taken) < size and (piece := next(pieces, b"")):
        taken += piece
    return bytes(taken)


def _unescaped(string: bytes) -> str:
    """The text of a JSON string without its quotes."""
    text = string.decode()
    return json.loads(f'"{text}"') if "\\" in text else text


def _digest(sentence: str) -> bytes:
    """What tells a sentence from all others."""
    return blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=16).digest()
