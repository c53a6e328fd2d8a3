import os

import pytest

from elmo_scratch.files.machine import num_processors


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
