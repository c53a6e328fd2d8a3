from pathlib import Path

from torch import distributed

from elmo_scratch.training.checkpointer import SharedClock
from tests.metrics.workers import run_in_two_workers


def asked_after_a_step(clock: SharedClock) -> bool:
    distributed.barrier()  # as for the gradients
    return clock.is_over()


def check_worker(rank: int) -> None:
    clock = SharedClock(60.0)
    assert not asked_after_a_step(clock)
    # That of the second goes wrong.
    clock._began -= 61.0 if rank == 0 else 1000.0
    assert [asked_after_a_step(clock) for _ in range(2)] == [False, True]
    clock.restart()
    assert not any(asked_after_a_step(clock) for _ in range(3))
    clock._began -= 61.0 if rank == 0 else 0.0
    assert [asked_after_a_step(clock) for _ in range(2)] == [False, True]


def test_the_time_is_over_for_all_when_it_is_for_the_first(tmp_path: Path) -> None:
    run_in_two_workers(check_worker, tmp_path)


def check_that_none_waits(rank: int) -> None:
    clock = SharedClock(0.0)
    if rank == 1:
        # A step may end before the first worker has looked at its clock.
        assert not clock.is_over()
    distributed.barrier()
    if rank == 0:
        assert not clock.is_over()
    distributed.barrier()
    assert clock.is_over()


def test_no_worker_waits_for_another(tmp_path: Path) -> None:
    run_in_two_workers(check_that_none_waits, tmp_path)
