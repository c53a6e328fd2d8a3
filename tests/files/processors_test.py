import os
import platform
from pathlib import Path

import pytest

from elmo_scratch.files import machine
from elmo_scratch.files.machine import num_processors, processor_name


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


def test_a_processor_is_named_as_the_system_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "cpuinfo"
    monkeypatch.setattr(machine, "PROCESSORS", described)
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert processor_name() == "x86_64"
    described.write_text("processor\t: 0\nmodel name\t: A Chip: fast\n", encoding="utf-8")
    assert processor_name() == "A Chip: fast"
    described.write_text("processor\t: 0\n", encoding="utf-8")
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert processor_name() == "arm"
