"""Long arrays in files, a part at a time, so that memory never holds them whole."""

from pathlib import Path
from typing import Iterator

import numpy
from allennlp.common.tqdm import Tqdm

_NUMBERS_AT_ONCE = 2**22


def array_parts(path: Path, dtype: str) -> Iterator[numpy.ndarray]:
    """
    # Parameters

    path : `Path`
        Numbers, and nothing else.
    dtype : `str`
        Their type.

    # Returns

    `Iterator[numpy.ndarray]`
        The numbers in parts, each of shape `(numbers,)`.
    """
    with open(path, "rb") as file:
        while (part := numpy.fromfile(file, dtype, _NUMBERS_AT_ONCE)).size:
            yield part


def count_numbers(path: Path, dtype: str, size: int) -> numpy.ndarray:
    """
    # Parameters

    path : `Path`
        Numbers below `size`.
    dtype : `str`
        Their type.
    size : `int`
        How many different numbers there may be.

    # Returns

    `numpy.ndarray`
        Shape `(size,)`: how often each number occurs.
    """
    counts = numpy.zeros(size, dtype=numpy.int64)
    for part in _shown(path, dtype, "counting words"):
        counts += numpy.bincount(part, minlength=size)
    return counts


def replace_numbers(path: Path, dtype: str, table: numpy.ndarray) -> None:
    """
    Replaces, in place, each number by what stands in its row of a table.

    # Parameters

    path : `Path`
        Numbers below the length of the table.
    dtype : `str`
        Their type.
    table : `numpy.ndarray`
        Shape `(numbers,)`, of this type.
    """
    with open(path, "r+b") as file:
        for part in _shown(path, dtype, "numbering words"):
            file.write(table[part].tobytes())


def count_repeats(path: Path, dtype: str) -> int:
    """
    # Parameters

    path : `Path`
        Numbers that are evenly spread, such as hashes.
    dtype : `str`
        Their type, unsigned.

    # Returns

    `int`
        How many of them equal an earlier one.
    """
    total = path.stat().st_size // numpy.dtype(dtype).itemsize
    # Equal numbers fall into the same of several groups, which are counted one after the other.
    num_groups = -(-total // _NUMBERS_AT_ONCE)
    repeats = 0
    for group in Tqdm.tqdm(range(num_groups), desc="finding repeated lines", delay=1):
        members = numpy.concatenate(
            [part[part % num_groups == group] for part in array_parts(path, dtype)]
        )
        members.sort()
        repeats += int((members[1:] == members[:-1]).sum())
    return repeats


def _shown(path: Path, dtype: str, what: str) -> Iterator[numpy.ndarray]:
    """As `array_parts`, with a progress bar where that takes long."""
    size = path.stat().st_size
    with Tqdm.tqdm(total=size, desc=what, unit="B", unit_scale=True, delay=1) as progress:
        for part in array_parts(path, dtype):
            yield part
            progress.update(part.nbytes)
