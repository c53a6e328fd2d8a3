import os
from pathlib import Path
from typing import Dict, Optional

import pytest

from elmo_scratch.files import machine as module
from elmo_scratch.files.machine import free_memory, machine_memory


def test_it_is_that_of_the_system() -> None:
    assert 2**28 < machine_memory() < 2**50


def test_where_the_system_does_not_say_there_is_no_bound(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(module, "CONTROL_GROUP", tmp_path / "nothing")
    assert machine_memory() == float("inf")


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("0::/", {"memory.max": "1000\n"}, 1000),
        ("0::/job/step", {"job/memory.max": "2000\n", "job/step/memory.max": "max\n"}, 2000),
        ("0::/job/step", {"job/memory.max": "3000\n", "job/step/memory.max": "2500\n"}, 2500),
        # The path of the host, which a container doesn't see.
        ("5:cpu:/a\n4:memory:/docker/1f", {"memory/memory.limit_in_bytes": "4000\n"}, 4000),
        ("5:cpu:/a", {"memory.max": "5000\n"}, None),
        ("0::/", {"memory.max": "max\n"}, None),
        ("", {}, None),
    ],
)
def test_a_container_may_allow_less(
    group: str,
    limits: dict,
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(module, "CONTROL_GROUP", tmp_path / "cgroup")
    monkeypatch.setattr(module, "LIMITS", tmp_path / "limits")
    (tmp_path / "cgroup").write_text(group, encoding="utf-8")
    for name, text in limits.items():
        file = tmp_path / "limits" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine_memory() == (installed if expected is None else expected)


@pytest.mark.skipif(not module.STATISTICS.exists(), reason="Linux tells there what is free")
def test_what_is_free_is_a_part_of_it() -> None:
    assert 0 < free_memory() <= machine_memory()


@pytest.mark.parametrize(
    "statistics, expected",
    [
        ("MemTotal:  9 kB\nMemAvailable:    5 kB\n", 5120.0),
        ("MemTotal:  9 kB\n", float("inf")),
        (None, float("inf")),
    ],
)
def test_what_is_free_is_counted_by_linux(
    statistics: Optional[str], expected: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(module, "STATISTICS", tmp_path / "meminfo")
    monkeypatch.setattr(module, "CONTROL_GROUP", tmp_path / "nothing")
    if statistics is not None:
        (tmp_path / "meminfo").write_text(statistics)
    assert free_memory() == expected


@pytest.mark.parametrize(
    "group, files, expected",
    [
        ("0::/job", {"max": "9000", "current": "7000", "stat": "anon 1\ninactive_file 500"}, 2500),
        ("0::/job", {"max": "9000", "current": "7000"}, 2000),
        ("0::/job", {"max": "9000"}, 9000),
        ("0::/job", {"max": "max", "current": "7000"}, 2**20),
    ],
)
def test_a_container_may_have_less_that_is_free(
    group: str,
    files: Dict[str, str],
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("STATISTICS", "CONTROL_GROUP", "LIMITS"):
        monkeypatch.setattr(module, name, tmp_path / name)
    (tmp_path / "STATISTICS").write_text("MemAvailable: 1024 kB\n")
    (tmp_path / "CONTROL_GROUP").write_text(group)
    (tmp_path / "LIMITS" / "job").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "LIMITS" / "job" / f"memory.{name}").write_text(text)
    assert free_memory() == expected
