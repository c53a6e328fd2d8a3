import os

import pytest

from elmo_scratch.embedders.machine_memory import machine_memory


def test_it_is_that_of_the_system() -> None:
    assert 2**28 < machine_memory() < 2**50


def test_where_the_system_does_not_say_there_is_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sysconf")
    assert machine_memory() == float("inf")
