import os
from pathlib import Path
from typing import Tuple

import pytest

from elmo_scratch.processors import num_processors, vendor_and_family


def test_only_those_that_the_process_may_run_on_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    assert num_processors() == 2


@pytest.mark.parametrize("count, expected", [(5, 5), (None, 1)])
def test_all_count_where_the_system_does_not_say_which(
    count: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert num_processors() == expected


@pytest.mark.parametrize(
    "told, expected",
    [
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\n", ("AuthenticAMD", 26)),
        ("vendor_id : A\ncpu family : 6\n\nvendor_id : B\ncpu family : 7\n", ("A", 6)),
        ("CPU implementer\t: 0x41\nCPU architecture: 8\n", ("", 0)),
        ("vendor_id : A: B\ncpu family : unknown\nno colon\n", ("A", 0)),
        ("", ("", 0)),
    ],
)
def test_what_linux_tells(told: str, expected: Tuple[str, int], tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(told)
    assert vendor_and_family(file) == expected


def test_where_it_tells_nothing(tmp_path: Path) -> None:
    assert vendor_and_family(tmp_path / "none") == ("", 0)
