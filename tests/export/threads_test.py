import threading
import time
from contextlib import closing
from typing import Generator, List

import pytest

from elmo_scratch.export.threads import DEPTH, run_ahead


def test_items_come_in_their_order() -> None:
    assert list(run_ahead(number for number in range(100))) == list(range(100))


def test_work_is_done_in_another_thread() -> None:
    names = list(run_ahead(threading.current_thread().name for _ in range(3)))
    assert threading.current_thread().name not in names


def test_it_runs_ahead_no_further_than_it_may() -> None:
    made: List[int] = []

    def numbers() -> Generator[int, None, None]:
        for number in range(100):
            made.append(number)
            yield number

    with closing(run_ahead(numbers())) as ahead:
        assert next(ahead) == 0
        deadline = time.monotonic() + 60
        while len(made) < DEPTH and time.monotonic() < deadline:
            time.sleep(0.001)
        assert DEPTH <= len(made) <= DEPTH + 1


def test_an_error_comes_in_its_turn() -> None:
    def numbers() -> Generator[int, None, None]:
        yield 1
        yield 2
        raise ValueError("broken")

    ahead = run_ahead(numbers())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(ahead)


def test_what_runs_ahead_is_closed_with_it() -> None:
    closed = threading.Event()

    def numbers() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    with closing(run_ahead(run_ahead(numbers()))) as ahead:
        next(ahead)
    assert closed.is_set()
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]
