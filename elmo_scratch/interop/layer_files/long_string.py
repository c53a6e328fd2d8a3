"""Strings in HDF5 files that memory has no room for."""

import struct
from itertools import chain
from typing import IO, Iterable, Iterator, Optional

import h5py
import numpy

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
