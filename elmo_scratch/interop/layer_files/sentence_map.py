"""The data set `sentence_to_index`: a JSON map from sentences to the keys of their layers."""

import json
import os
import re
import struct
from array import array
from contextlib import contextmanager
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Iterable, Iterator, NamedTuple, Optional, Tuple

import h5py
import numpy

from elmo_scratch.interop.layer_files.hdf5 import HEAP_HEAD, OBJECT_HEAD
from elmo_scratch_compat.bounds import INDEX_ENTRY

DIGEST_SIZE = 16
"""Bytes of a sentence's digest: enough that no two sentences will ever share one."""

GROUPS = 16
"""Digests are compared group by group, one group in memory at a time."""

READ_AT_ONCE = 2**16
"""Digests read at once, 1 MiB of them."""


class IndexText(NamedTuple):
    """
    The JSON text, `size` bytes long. It takes only a few bytes of memory a sentence: `entries` is a
    temporary file of them, and `is_kept` says which of its lines belong to the map.

    Made by `IndexText.of`.
    """

    entries: IO[bytes]
    is_kept: numpy.ndarray
    size: int

    @classmethod
    @contextmanager
    def of(cls, sentences: Iterable[Tuple[str, str]], folder: Path) -> Iterator["IndexText"]:
        """
        Writes the text to a temporary file in `folder`, for the block. `sentences` yields sentences
        and their keys; if sentences are equal, the last one's key counts.
        """
        with TemporaryFile(dir=folder) as entries, TemporaryFile(dir=folder) as digests:
            for sentence, key in sentences:
                name = json.dumps(sentence).encode()
                entries.write(b"%s: %s\n" % (name, json.dumps(key).encode()))
                digests.write(blake2b(name, digest_size=DIGEST_SIZE).digest())
            text = cls(entries, is_last(digests), size=0)
            yield text._replace(size=sum(map(len, text.pieces())))

    def pieces(self) -> Iterator[bytes]:
        """Yields the text in pieces, `self.size` bytes together."""
        yield b"{"
        separator = b""
        self.entries.seek(0)
        for entry, is_kept in zip(self.entries, self.is_kept):
            if is_kept:
                yield separator + entry[:-1]
                separator = b", "
        yield b"}"


def is_last(digests: IO[bytes]) -> numpy.ndarray:
    """
    For `n` digests in a file that stands at its end: whether no later one is equal. Shape `(n,)`.
    """
    result = numpy.ones(digests.tell() // DIGEST_SIZE, dtype=bool)
    for group in range(GROUPS):
        places, chosen = [numpy.empty(0, "int64")], [numpy.empty((0, 2), "uint64")]
        start = 0
        digests.seek(0)
        while piece := digests.read(READ_AT_ONCE * DIGEST_SIZE):
            halves = numpy.frombuffer(piece, "uint64").reshape(-1, 2)
            (among,) = numpy.nonzero(halves[:, 0] % GROUPS == group)
            places.append(start + among)
            chosen.append(halves[among])
            start += len(halves)
        halves = numpy.concatenate(chosen)
        order = numpy.lexsort((halves[:, 1], halves[:, 0]))  # equal ones stay in order
        ordered = halves[order]
        is_repeated = (ordered[:-1] == ordered[1:]).all(axis=-1)
        result[numpy.concatenate(places)[order[:-1][is_repeated]]] = False
    return result


REFERENCE = struct.Struct("<IQI")
"""How a data set stores a string: its size, the address of its heap, and its number there."""

SMALLEST_HEAP = 4096
LONGEST_STRING = 2**32 - 1
"""The most bytes that a string in an HDF5 file may have."""

BLOCK = 2**20


def write_long_string(file: h5py.File, name: str, size: int, pieces: Iterable[bytes]) -> None:
    """
    Makes a data set `name` of shape `(1,)` with one variable-length UTF-8 string of `size` bytes,
    at most `LONGEST_STRING`. Raises `ValueError` if `pieces` have more or fewer bytes.

    HDF5 itself takes a string whole and copies it several times. Here the heap, in which HDF5 keeps
    variable-length strings, is written piece by piece as the numbers of a second data set. No
    reader meets that data set and HDF5 never deletes it: only a group leads to it, and only the
    group itself leads to that group.

    # Source

    The HDF5 File Format Specification, III.E "Global Heap" and IV.A.2.d "Datatype Message", class
    "Variable-Length".
    """
    heap = file.create_group(name)
    heap["itself"] = heap
    start, end = _heap_ends(size)
    numbers = heap.create_dataset("heap", (len(start) + size + len(end),), dtype="uint8")
    place = 0
    for block in _blocks(chain([start], pieces, [end])):
        if place + len(block) <= len(numbers):
            numbers[place : place + len(block)] = numpy.frombuffer(block, "uint8")
        place += len(block)
    if place != len(numbers):
        raise ValueError(f"expected {size} bytes, but got {size + place - len(numbers)}")
    address = numbers.id.get_offset()
    del file[name]
    string = file.create_dataset(name, (1,), dtype=h5py.string_dtype("utf-8"), chunks=(1,))
    string.id.write_direct_chunk((0,), REFERENCE.pack(size, address, 1))


def read_long_string(file: h5py.File, name: str) -> Iterator[bytes]:
    """
    Yields the string of a data set of shape `(1,)`: in pieces if `write_long_string` wrote it,
    whole as HDF5 gives it otherwise.
    """
    string = file[name]
    with open(file.filename, "rb") as heap:
        reference = _reference_of(string, heap)
        # HDF5 takes memory for as many bytes as the reference says.
        if reference is not None and reference[0] > os.path.getsize(file.filename):
            raise ValueError(f"it is told to have {reference[0]} bytes, but the file has fewer")
        size = None if reference is None else _find_string(heap, *reference)
        if size is None:
            yield string[0]
            return
        while size > 0 and (block := heap.read(min(size, BLOCK))):
            yield block
            size -= len(block)


def _reference_of(string: h5py.Dataset, file: IO[bytes]) -> Optional[Tuple[int, int, int]]:
    """
    The reference that a data set of one string stores, `REFERENCE`; `None` where it is packed, or
    lies among the properties of the data set.
    """
    stored = b""
    if string.chunks is None:
        place = string.id.get_offset()
        if place is not None:
            file.seek(place)
            stored = file.read(REFERENCE.size)
    elif not string.id.get_create_plist().get_nfilters() and string.id.get_num_chunks() == 1:
        _, stored = string.id.read_direct_chunk((0,))
    return REFERENCE.unpack(stored) if len(stored) == REFERENCE.size else None


def _find_string(heap: IO[bytes], size: int, address: int, number: int) -> Optional[int]:
    """
    Seeks the bytes of a string in a file and returns their number; `None` if they aren't found.
    """
    heap.seek(address)
    start, _ = _heap_ends(size)
    return size if number == 1 and heap.read(len(start)) == start else None


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Joins pieces into blocks that are worth a write."""
    block = bytearray()
    for piece in pieces:
        block += piece
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)


def _heap_ends(size: int) -> Tuple[bytes, bytes]:
    """
    The bytes of a heap before its one string, and after it: padding, and object 0, the free space.
    """
    padding = bytes(-size % 8)
    taken = HEAP_HEAD.size + OBJECT_HEAD.size + size + len(padding)
    heap_size = max(SMALLEST_HEAP, taken)
    start = HEAP_HEAD.pack(b"GCOL", 1, heap_size) + OBJECT_HEAD.pack(1, 1, size)
    free = heap_size - taken
    free_head = OBJECT_HEAD.pack(0, 0, free) if free >= OBJECT_HEAD.size else b""
    return start, padding + free_head.ljust(free, b"\0")


STRING = rb'"([^"\\]*(?:\\.[^"\\]*)*)"'
ENTRY = re.compile(rb"\s*([{,])\s*%s\s*:\s*%s" % (STRING, STRING), re.DOTALL)
"""An entry of a JSON map from strings to strings, with the separator before it."""


class SentenceIndex:
    """
    Finds the entry of a sentence, in about 50 bytes of memory a sentence. `entries` yields
    sentences and their keys; if sentences are equal, the last one is found.
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
        """The place of a sentence among the entries; `None` if it isn't there."""
        first, second = numpy.frombuffer(_digest(sentence), "uint64")
        start = numpy.searchsorted(self._digests[:, 0], first, "left")
        stop = numpy.searchsorted(self._digests[:, 0], first, "right")
        (equal,) = numpy.nonzero(self._digests[start:stop, 1] == second)
        return int(self._places[start + equal[-1]]) if len(equal) else None

    def key(self, place: int) -> str:
        start, stop = self._ends[place : place + 2]
        return self._keys[start:stop].decode("utf-8", "surrogatepass")


def entries_of(text: Iterable[bytes]) -> Iterator[Tuple[str, str]]:
    """
    Yields the entries of a JSON map from strings to strings, given in pieces. Raises `ValueError`
    if the text is no such map.
    """
    pieces = iter(text)
    buffer, position, separator = b"", 0, b"{"
    while True:
        match = ENTRY.match(buffer, position)
        if match and match[1] == separator:
            yield _unescaped(match[2]), _unescaped(match[3])
            position, separator = match.end(), b","
        elif len(buffer) - position > INDEX_ENTRY:
            break
        elif more := _take(pieces, len(buffer) - position):
            buffer, position = buffer[position:] + more, 0
        else:
            break
    end = b"".join(buffer[position:].split())
    if end != (b"{}" if separator == b"{" else b"}"):
        raise ValueError("expected a JSON map from strings to strings")


def _take(pieces: Iterator[bytes], size: int) -> bytes:
    """Takes at least `size` bytes, and at least one, or all that are left."""
    # For a long entry the buffer doubles each time, because its beginning is matched anew.
    taken = bytearray(next(pieces, b""))
    while len(taken) < size and (piece := next(pieces, b"")):
        taken += piece
    return bytes(taken)


def _unescaped(string: bytes) -> str:
    """The text of a JSON string, given without its quotes."""
    text = string.decode()
    return json.loads(f'"{text}"') if "\\" in text else text


def _digest(sentence: str) -> bytes:
    """A digest that tells a sentence from all others."""
    return blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=16).digest()
