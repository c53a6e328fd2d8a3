"""The data set `sentence_to_index`: a JSON map from sentences to the keys of their layers."""

import json
import re
import struct
from array import array
from contextlib import contextmanager
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Iterable, Iterator, Optional, Tuple

import h5py
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


HEAP_HEAD = struct.Struct("<4sB3xQ")
"""What a global heap begins with: its signature, its version and its size in bytes."""

OBJECT_HEAD = struct.Struct("<HH4xQ")
"""What an object there begins with: its number, how many refer to it, and its size in bytes."""

REFERENCE = struct.Struct("<IQI")
"""What a data set holds of a string: its size, where its heap lies, and its number there."""

SMALLEST_HEAP = 4096
LONGEST_STRING = 2**32 - 1
"""Bytes that a string in an HDF5 file may have."""

BLOCK = 2**20


def write_long_string(file: h5py.File, name: str, size: int, pieces: Iterable[bytes]) -> None:
    """
    Makes a data set of the shape `(1,)` with one string of variable length, in UTF-8.

    HDF5 itself takes a string whole and holds it several times. Here the heap, which is where
    strings of variable length lie, is written piece by piece as the numbers of another data set:
    one that no reader meets and that is never deleted, for only a group leads to it which nothing
    but the group itself leads to.

    # Parameters

    file : `h5py.File`
        An HDF5 file open for writing.
    name : `str`
        The name of the data set.
    size : `int`
        The bytes of all pieces together, at most `LONGEST_STRING`.
    pieces : `Iterable[bytes]`
        The string.

    # Raises

    ValueError
        If the pieces have more or fewer bytes than `size`.

    # Source

    The HDF5 File Format Specification, III.E "Global Heap" and IV.A.2.d "Datatype Message", class
    "Variable-Length".
    """
    heap = file.create_group(name)
    heap["itself"] = heap
    address = _write_heap(heap, size, pieces)
    del file[name]
    string = file.create_dataset(name, (1,), dtype=h5py.string_dtype("utf-8"), chunks=(1,))
    string.id.write_direct_chunk((0,), REFERENCE.pack(size, address, 1))


def read_long_string(file: h5py.File, name: str) -> Iterator[bytes]:
    """
    Yields a string that `write_long_string` wrote in pieces; any other whole, as HDF5 gives it.

    # Parameters

    file : `h5py.File`
        An HDF5 file.
    name : `str`
        A data set of the shape `(1,)` of a string of variable length.
    """
    string = file[name]
    with open(file.filename, "rb") as heap:
        size = _find_string(string, heap)
        if size is None:
            yield string[0]
            return
        while size > 0 and (block := heap.read(min(size, BLOCK))):
            yield block
            size -= len(block)


def _find_string(string: h5py.Dataset, heap: IO[bytes]) -> Optional[int]:
    """Goes to the bytes of a string in a file and gives their number; `None` if it isn't clear."""
    if string.chunks != (1,) or string.id.get_num_chunks() != 1:
        return None
    if string.id.get_chunk_info(0).size != REFERENCE.size:
        return None
    _, reference = string.id.read_direct_chunk((0,))
    size, address, number = REFERENCE.unpack(reference)
    heap.seek(address)
    start = _start(size)
    return size if number == 1 and heap.read(len(start)) == start else None


def _write_heap(group: h5py.Group, size: int, pieces: Iterable[bytes]) -> int:
    """Writes a heap of one string and gives its address in the file."""
    heap = group.create_dataset("heap", (_heap_size(size),), dtype="uint8")
    place = 0
    for block in _blocks(chain([_start(size)], pieces, [_end(size)])):
        if place + len(block) <= len(heap):
            heap[place : place + len(block)] = numpy.frombuffer(block, "uint8")
        place += len(block)
    if place != len(heap):
        raise ValueError(f"expected {size} bytes, but got {size + place - len(heap)}")
    return heap.id.get_offset()


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces in blocks that are worth a write."""
    block = bytearray()
    for piece in pieces:
        block += piece
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)


def _heap_size(size: int) -> int:
    """The bytes of a heap of one string."""
    return max(SMALLEST_HEAP, HEAP_HEAD.size + OBJECT_HEAD.size + size + -size % 8)


def _start(size: int) -> bytes:
    """What lies in a heap before its one string."""
    return HEAP_HEAD.pack(b"GCOL", 1, _heap_size(size)) + OBJECT_HEAD.pack(1, 1, size)


def _end(size: int) -> bytes:
    """What lies in a heap after its one string: object 0 is the space that is free."""
    padding = bytes(-size % 8)
    free = _heap_size(size) - len(_start(size)) - size - len(padding)
    return padding + (OBJECT_HEAD.pack(0, 0, free) if free >= OBJECT_HEAD.size else b"").ljust(
        free, b"\0"
    )


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
