"""Checkpoints of several workers and machines."""

import time
from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest
from allennlp.common.checks import ConfigurationError
from torch import distributed

from elmo_scratch.training import WholeCheckpointer
from tests.metrics.workers import run_in_two_workers
from tests.training.machines import machine, run_on_two_machines
from tests.training.tiny_trainer import TinyTrainer, saved


def prepare(folder: Path, *batches_of: Tuple[int, ...]) -> None:
    """Gives each machine checkpoints of its own."""
    for rank, batches in enumerate(batches_of):
        machine(folder, rank).mkdir()
        checkpointer = WholeCheckpointer(machine(folder, rank))
        for batch in batches:
            checkpointer.save_checkpoint(TinyTrainer().place(0, batch))


def loaded(folder: Path) -> Optional[float]:
    """The only weight of the checkpoint that a new start finds."""
    checkpoint = WholeCheckpointer(folder).load_checkpoint()
    return checkpoint and checkpoint.model_state["weight"].item()


def test_none_removes_an_older_one_before_all_have_the_new_one(tmp_path: Path) -> None:
    def save_twice(rank: int, folder: Path) -> None:
        checkpointer = WholeCheckpointer(folder, keep_most_recent_by_count=1)
        checkpointer.save_checkpoint(TinyTrainer().place(0, 1))
        write = checkpointer._write

        def write_late(state: Any, path: Path) -> None:
            if rank == 1:
                time.sleep(0.5)
                assert "model e0_b1" in saved(machine(tmp_path, 0))
            write(state, path)

        checkpointer._write = write_late  # type: ignore[method-assign]
        checkpointer.save_checkpoint(TinyTrainer().place(0, 2))
        assert saved(folder) == ["model e0_b2", "training e0_b2"]

    run_on_two_machines(save_twice, tmp_path)


def test_all_go_on_from_the_newest_that_all_have(tmp_path: Path) -> None:
    prepare(tmp_path, (2, 3), (1, 2))

    def load(rank: int, folder: Path) -> None:
        assert loaded(folder) == 2.0

    run_on_two_machines(load, tmp_path)
    # The newer one is not in the way of those that come.
    whole = ["model e0_b2", "training e0_b2"]
    aside = ["model e0_b3.th.not_shared", "training e0_b3.th.not_shared"]
    assert saved(machine(tmp_path, 0)) == sorted(whole + aside)
    assert saved(machine(tmp_path, 1)) == ["model e0_b1", "model e0_b2", *saved_training(1, 2)]


def saved_training(*batches: int) -> List[str]:
    return [f"training e0_b{batch}" for batch in batches]


def test_what_one_of_them_cannot_read_none_goes_on_from(tmp_path: Path) -> None:
    prepare(tmp_path, (1, 2), (1, 2))
    (machine(tmp_path, 1) / "model_state_e0_b2.th").write_bytes(b"half")

    def load(rank: int, folder: Path) -> None:
        assert loaded(folder) == 1.0

    run_on_two_machines(load, tmp_path)
    assert "model e0_b2.th.not_shared" in saved(machine(tmp_path, 0))
    assert "model e0_b2.th.unreadable" in saved(machine(tmp_path, 1))


@pytest.mark.parametrize("own, told", [((), "none"), ((1,), "e0_b1")])
def test_where_they_have_none_in_common_there_is_an_error_and_none_is_touched(
    own: Tuple[int, ...], told: str, tmp_path: Path
) -> None:
    prepare(tmp_path, (2, 3), own)
    before = [saved(machine(tmp_path, rank)) for rank in range(2)]

    def load(rank: int, folder: Path) -> None:
        with pytest.raises(
            ConfigurationError, match=rf"\(worker 0: e0_b2, e0_b3; worker 1: {told}\).*it wrote to"
        ):
            loaded(folder)

    run_on_two_machines(load, tmp_path)
    assert [saved(machine(tmp_path, rank)) for rank in range(2)] == before


def test_where_one_of_them_can_read_none_all_are_told(tmp_path: Path) -> None:
    prepare(tmp_path, (1,), (1,))
    damaged = machine(tmp_path, 1) / "model_state_e0_b1.th"
    damaged.write_bytes(b"half")

    def load(rank: int, folder: Path) -> None:
        with pytest.raises(ConfigurationError, match=f"none .* can be read.*{damaged}"):
            loaded(folder)

    run_on_two_machines(load, tmp_path)


def test_where_none_has_one_the_training_begins(tmp_path: Path) -> None:
    def load(rank: int, folder: Path) -> None:
        assert loaded(folder) is None

    run_on_two_machines(load, tmp_path)


def test_the_first_worker_of_each_machine_removes_what_a_killed_save_has_left(
    tmp_path: Path,
) -> None:
    def begin(rank: int, folder: Path) -> None:
        for name in (".model_state_e0_b2.th.123.part", "training_state_e0_b2.th"):
            (folder / name).write_bytes(b"half")
        WholeCheckpointer(folder)
        assert not saved(folder)

    run_on_two_machines(begin, tmp_path)


def test_another_worker_of_a_machine_leaves_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    left = tmp_path / "training_state_e0_b2.th"
    left.write_bytes(b"half")

    def begin(rank: int) -> None:
        if rank == 1:
            WholeCheckpointer(tmp_path)
            assert left.exists()
        distributed.barrier()
        if rank == 0:
            WholeCheckpointer(tmp_path)
            assert not left.exists()

    monkeypatch.setenv("ALLENNLP_PROCS_PER_NODE", "2")
    run_in_two_workers(begin, tmp_path)


def test_checkpoints_come_by_the_clock_of_the_first(tmp_path: Path) -> None:
    def train(rank: int, folder: Path) -> None:
        # The second's own clock would never say so.
        checkpointer = WholeCheckpointer(folder, save_every_num_seconds=1000.0 * rank)
        saves = []
        for batch in range(1, 8):
            distributed.barrier()  # as for the gradients
            if checkpointer.maybe_save_checkpoint(TinyTrainer().place(0, batch), 0, batch):
                saves.append(batch)
        assert saves == [2, 4, 6]
        assert saved(folder) == ["model e0_b4", "model e0_b6", *saved_training(4, 6)]

    run_on_two_machines(train, tmp_path)


def test_checkpoints_by_number_begin_the_time_anew(tmp_path: Path) -> None:
    def train(rank: int, folder: Path) -> None:
        checkpointer = WholeCheckpointer(
            folder, save_every_num_seconds=60.0, save_every_num_batches=2
        )
        clock = checkpointer._clock
        assert clock is not None
        saves = []
        for batch in range(1, 6):
            distributed.barrier()
            clock._began -= 35.0  # over after each second batch
            if checkpointer.maybe_save_checkpoint(TinyTrainer().place(0, batch), 0, batch):
                saves.append(batch)
        assert saves == [2, 4]

    run_on_two_machines(train, tmp_path)
