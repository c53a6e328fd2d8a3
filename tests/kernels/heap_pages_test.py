import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest
import torch

from elmo_scratch.kernels import memory
from elmo_scratch.kernels.memory import (
    CHOSEN_BY_USERS,
    LOOK_EVERY,
    keep_heap_pages,
    release_spare_pages,
)

STATUS = Path("/proc/self/status")

COUNT_CLEARED_PAGES = """
import resource, sys
import torch
from elmo_scratch.kernels.memory import keep_heap_pages

if sys.argv[1] == "kept":
    assert keep_heap_pages()
counts = []
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.empty(2**22).fill_(1) for _ in range(16)]
    del tensors
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(counts[-1])
"""


@pytest.fixture(autouse=True)
def forget_the_answer(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in CHOSEN_BY_USERS:
        monkeypatch.delenv(name, raising=False)
    keep_heap_pages.cache_clear()
    yield
    keep_heap_pages.cache_clear()


class Library:
    """A C library that takes settings up to a size."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.settings: List[Tuple[int, int]] = []

    def mallopt(self, setting: int, value: int) -> int:
        self.settings.append((setting, value))
        return int(value <= self.most)


@pytest.mark.exhaustive
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library")
def test_pages_are_not_cleared_again() -> None:
    def cleared(what: str, **environment: str) -> int:
        command = [sys.executable, "-c", COUNT_CLEARED_PAGES, what]
        ran = subprocess.run(
            command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
        )
        return int(ran.stdout)

    # By itself the library gives back only what nothing else happens to lie above.
    given_back = cleared("given back", MALLOC_MMAP_THRESHOLD_="65536")
    assert cleared("kept") < given_back / 10


@pytest.mark.parametrize(
    "most, expected",
    [
        (2**25, [(-3, 2**25), (-1, -1)]),
        (2**20, [(-3, 2**25)]),
    ],
)
def test_the_library_is_asked_for_what_it_allows(
    most: int, expected: List[Tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library(most)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: library)
    assert keep_heap_pages() is (most > 2**20)
    assert library.settings == expected


def test_another_library_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    assert not keep_heap_pages()


@pytest.mark.parametrize("name", CHOSEN_BY_USERS)
def test_what_users_have_chosen_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: Dict[str, str] = {name: "65536"}
    monkeypatch.setattr(os, "environ", {**os.environ, **chosen})
    library = Library(2**40)
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: library)
    assert not keep_heap_pages() and library.settings == []


def resident() -> float:
    """The memory of this process in MiB."""
    return int(STATUS.read_text().split("VmRSS:")[1].split()[0]) / 2**10


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library")
def test_gaps_between_tensors_are_given_back() -> None:
    def calls() -> List[bool]:
        return [release_spare_pages() for _ in range(LOOK_EVERY)]

    calls()
    pairs = [(torch.empty(2**19).fill_(1), torch.empty(2**10).fill_(1)) for _ in range(160)]
    before = resident()
    small = [one for _, one in pairs]
    del pairs
    kept = resident()
    assert calls().count(True) == 1
    # Of 320 MiB, which small tensors keep apart.
    assert before - kept < 32 and kept - resident() > 256
    assert len(small) == 160


def test_heaps_are_left_alone_where_nothing_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.ctypes, "CDLL", lambda _: object())
    assert not any(release_spare_pages() for _ in range(LOOK_EVERY))
