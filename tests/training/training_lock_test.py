import errno
import fcntl
import multiprocessing
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.training import GradientDescentTrainer

from elmo_scratch.training.checkpointer import (
    LOCK,
    TrainingLock,
    WholeCheckpointer,
    end_training,
    training_process,
)
from elmo_scratch_compat import training as compat_training

FORK = multiprocessing.get_context("fork")


def train(folder: Path, child_pid: Any) -> None:
    """Holds the lock, and has a child."""
    lock = TrainingLock(folder)
    child = FORK.Process(target=time.sleep, args=(60,))
    child.start()
    child_pid.put(child.pid)
    time.sleep(60)
    lock.check()


@contextmanager
def training_in(folder: Path) -> Iterator[Any]:
    """A process that holds the lock, and has a child."""
    child_pid = FORK.Queue()
    process = FORK.Process(target=train, args=(folder, child_pid))
    process.start()
    child = child_pid.get(timeout=60)
    try:
        yield process
    finally:
        process.kill()
        process.join()
        os.kill(child, 9)


def test_another_process_is_refused_until_the_first_has_gone(tmp_path: Path) -> None:
    with training_in(tmp_path) as process:
        for _ in range(2):
            with pytest.raises(ConfigurationError) as raised:
                TrainingLock(tmp_path)
            for part in (f"{tmp_path}: process {process.pid} on ", "Wait until", "-s"):
                assert part in str(raised.value)
        process.kill()
        process.join()
        # Its child is still there.
        TrainingLock(tmp_path)
    assert (tmp_path / LOCK).read_text("utf-8").startswith(f"process {os.getpid()} on ")


def test_what_the_first_is_writing_stays(tmp_path: Path) -> None:
    part = tmp_path / ".model_state_e0_b1.th.x.part"
    half = tmp_path / "training_state_e0_b1.th"
    for file in (part, half):
        file.touch()
    with training_in(tmp_path):
        with pytest.raises(ConfigurationError, match="trains there"):
            WholeCheckpointer(tmp_path)
        assert part.exists() and half.exists()
    WholeCheckpointer(tmp_path)
    assert not part.exists() and not half.exists()


def test_who_removes_folders_looks_for_the_same_lock() -> None:
    assert compat_training.LOCK == LOCK


def test_in_its_own_process_it_keeps_nobody_out(tmp_path: Path) -> None:
    first, second = WholeCheckpointer(tmp_path), WholeCheckpointer(tmp_path)
    assert first is not second


def test_where_another_has_begun_nothing_more_is_written(tmp_path: Path) -> None:
    """As after the folder was removed by hand, and made anew."""
    checkpointer, trainer = WholeCheckpointer(tmp_path), object.__new__(GradientDescentTrainer)
    lock = TrainingLock(tmp_path)
    lock.check()
    (tmp_path / LOCK).unlink()
    lock.check()
    (tmp_path / LOCK).touch()
    for check in (lock.check, lambda: checkpointer.save_checkpoint(trainer)):
        with pytest.raises(
            ConfigurationError, match=f"{tmp_path}: another training has begun here"
        ):
            check()


def hold(folder: Path, places: Any) -> None:
    try:
        TrainingLock(folder)
        places.put("held")
    except ConfigurationError:
        places.put("refused")


@pytest.mark.parametrize("count", [1, 3])
def test_it_is_over_with_the_last_instance(count: int, tmp_path: Path) -> None:
    places, found = FORK.Queue(), []
    locks = [TrainingLock(tmp_path) for _ in range(count)]
    # Those of trainings that were stopped, as in a notebook.
    del locks[:-1]
    for _ in range(2):
        other = FORK.Process(target=hold, args=(tmp_path, places))
        other.start()
        found.append(places.get(timeout=120))
        other.join()
        locks.clear()
    assert found == ["refused", "held"]


def test_only_the_first_worker_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with training_in(tmp_path):
        monkeypatch.setattr("allennlp.training.checkpointer.is_distributed", lambda: True)
        monkeypatch.setattr("torch.distributed.get_rank", lambda: 1)
        WholeCheckpointer(tmp_path)
        monkeypatch.setattr("torch.distributed.get_rank", lambda: 0)
        with pytest.raises(ConfigurationError, match="trains there"):
            WholeCheckpointer(tmp_path)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_files_cannot_be_locked_there_is_none(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> None:
        raise OSError(number, "not here")

    monkeypatch.setattr(fcntl, "lockf", unknown)
    TrainingLock(tmp_path)
    assert (tmp_path / LOCK).read_text("utf-8") == ""


def test_where_nothing_can_be_written_there_is_none(tmp_path: Path) -> None:
    TrainingLock(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()


def test_who_trains_is_told_without_a_change(tmp_path: Path) -> None:
    assert training_process(tmp_path) is None
    with training_in(tmp_path) as process:
        before = (tmp_path / LOCK).stat().st_mtime_ns
        assert str(training_process(tmp_path)).startswith(f"process {process.pid} on ")
        assert (tmp_path / LOCK).stat().st_mtime_ns == before
    assert training_process(tmp_path) is None


def test_to_ask_leaves_the_lock_of_this_process_as_it_is(tmp_path: Path) -> None:
    lock = TrainingLock(tmp_path)
    assert str(training_process(tmp_path)).startswith(f"process {os.getpid()} on ")
    with FORK.Pool(1) as pool:
        assert pool.apply(training_process, [tmp_path]) is not None
    lock.check()


def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK)
    assert training_process(tmp_path) is None


def test_a_training_of_this_process_is_over_when_it_says_so(tmp_path: Path) -> None:
    lock = TrainingLock(tmp_path)
    assert training_process(tmp_path) is not None
    end_training(tmp_path)
    assert training_process(tmp_path) is None
    lock.check()
