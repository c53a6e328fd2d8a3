from collections import Counter
from pathlib import Path

import numpy
import pytest

from elmo_scratch.data.corpus import preparation as module
from elmo_scratch.data.corpus.preparation import (
    array_parts,
    count_numbers,
    count_repeats,
    replace_numbers,
)

NUMBERS = numpy.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], dtype="<u4")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    NUMBERS.tofile(tmp_path / "numbers.bin")
    return tmp_path / "numbers.bin"


def test_parts_are_the_numbers_of_the_file(path: Path) -> None:
    parts = list(array_parts(path, "<u4"))
    assert [len(part) for part in parts] == [4, 4, 3]
    assert numpy.concatenate(parts).tolist() == NUMBERS.tolist()


def test_numbers_are_counted(path: Path) -> None:
    counts = count_numbers(path, "<u4", 12)
    assert counts.tolist() == [0, 2, 1, 2, 1, 3, 1, 0, 0, 1, 0, 0]


def test_numbers_are_replaced_in_place(path: Path) -> None:
    replace_numbers(path, "<u4", numpy.arange(100, 110, dtype="<u4"))
    assert numpy.fromfile(path, "<u4").tolist() == (NUMBERS + 100).tolist()


def test_repeats_are_those_that_equal_an_earlier_one(path: Path, tmp_path: Path) -> None:
    assert count_repeats(path, "<u4") == 4
    hashes = numpy.random.default_rng(0).integers(50, size=200, dtype=numpy.uint64)
    hashes += numpy.uint64(2**64 - 100)
    hashes.tofile(tmp_path / "hashes.bin")
    expected = sum(count - 1 for count in Counter(hashes.tolist()).values())
    assert count_repeats(tmp_path / "hashes.bin", "<u8") == expected


def test_in_an_empty_file_nothing_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "none.bin").touch()
    assert count_repeats(tmp_path / "none.bin", "<u8") == 0
