import logging
import os
import resource
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Iterator, List

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.training import Checkpointer

from elmo_scratch.training import WholeCheckpointer
from tests.training.tiny_trainer import TinyTrainer, saved


def save(folder: Path, *places: Any, **settings: Any) -> Checkpointer:
    checkpointer = WholeCheckpointer(folder, **settings)
    for place in places:
        checkpointer.save_checkpoint(TinyTrainer().place(*place))
    return checkpointer


def loaded(folder: Path) -> Any:
    """The only weight of the checkpoint that a new start finds."""
    checkpoint = WholeCheckpointer(folder).load_checkpoint()
    return checkpoint and checkpoint.model_state["weight"].item()


def test_it_is_made_from_a_config(tmp_path: Path) -> None:
    made = Checkpointer.by_name("elmo_scratch_whole")(tmp_path, save_every_num_seconds=3)
    assert isinstance(made, WholeCheckpointer)


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    save(tmp_path, (0, 1), (0, 2), (1, 0), keep_most_recent_by_count=2)
    assert saved(tmp_path) == ["model e0_b2", "model e1_b0", "training e0_b2", "training e1_b0"]
    assert loaded(tmp_path) == 100


def test_the_name_of_the_folder_is_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "lr[1]*?"
    folder.mkdir()
    save(folder, (0, 1), (0, 2), (1, 0), keep_most_recent_by_count=2)
    assert saved(folder) == ["model e0_b2", "model e1_b0", "training e0_b2", "training e1_b0"]
    assert loaded(folder) == 100


def test_all_are_kept_where_nothing_is_said(tmp_path: Path) -> None:
    places = [(0, number) for number in range(1, 5)]
    save(tmp_path, *places, keep_most_recent_by_count=None)
    assert len(saved(tmp_path)) == 8


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("setting", ["save_every_num_batches", "keep_most_recent_by_count"])
def test_no_checkpoints_at_all_are_an_error(setting: str, number: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=f"`{setting}` .*of 1 or more.* got .*{number}"):
        WholeCheckpointer(tmp_path, **{setting: number})  # type: ignore[arg-type]


def test_what_is_removed_is_not_taken_for_its_namesake(tmp_path: Path) -> None:
    save(tmp_path, *[(0, number) for number in range(1, 13)], keep_most_recent_by_count=11)
    assert loaded(tmp_path) == 12
    assert len(saved(tmp_path)) == 22


def test_checkpoints_come_by_steps_also_after_a_recovery(tmp_path: Path) -> None:
    def saves(checkpointer: Checkpointer, batches: range) -> List[int]:
        return [
            batch
            for batch in batches
            if checkpointer.maybe_save_checkpoint(TinyTrainer().place(0, batch), 0, batch)
        ]

    first = WholeCheckpointer(tmp_path, save_every_num_batches=3)
    assert saves(first, range(1, 8)) == [3, 6]
    second = WholeCheckpointer(tmp_path, save_every_num_batches=3)
    assert second.load_checkpoint() is not None
    assert saves(second, range(7, 14)) == [9, 12]


def test_checkpoints_come_by_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checkpointer = WholeCheckpointer(tmp_path, save_every_num_seconds=60)
    trainer = TinyTrainer().place(0, 1)
    assert not checkpointer.maybe_save_checkpoint(trainer, 0, 1)
    checkpointer._last_save_time -= 61
    assert checkpointer.maybe_save_checkpoint(trainer, 0, 1)
    assert not checkpointer.maybe_save_checkpoint(trainer.place(0, 2), 0, 2)


def test_the_model_comes_last_and_old_ones_go_when_it_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    moves: List[str] = []
    replace, unlink = os.replace, Path.unlink

    def note_replace(source: Any, target: Any) -> None:
        moves.append(f"+{Path(target).name}")
        replace(source, target)

    def note_unlink(path: Path, missing_ok: bool = False) -> None:
        if path.exists():
            moves.append(f"-{path.name}")
        unlink(path, missing_ok)

    save(tmp_path, (0, 1))
    monkeypatch.setattr(os, "replace", note_replace)
    monkeypatch.setattr(Path, "unlink", note_unlink)
    save(tmp_path, (0, 2), keep_most_recent_by_count=1)
    assert moves == [
        "+training_state_e0_b2.th",
        "+model_state_e0_b2.th",
        "-model_state_e0_b1.th",
        "-training_state_e0_b1.th",
    ]


def test_better_weights_without_a_checkpoint_leave_the_last_one_as_it_is(tmp_path: Path) -> None:
    checkpointer = save(tmp_path, (1, 0), save_completed_epochs=False)
    best = tmp_path / "best.th"
    os.link(tmp_path / "model_state_e1_b0.th", best)
    before = best.read_bytes()
    trainer = TinyTrainer().place(2, 0)
    assert not checkpointer.maybe_save_checkpoint(trainer, 2, 0)
    assert best.read_bytes() == before
    trainer._save_model_state(str(best))  # as the trainer then does
    assert best.read_bytes() != before
    assert loaded(tmp_path) == 100


def test_what_a_killed_save_has_left_is_removed(tmp_path: Path) -> None:
    save(tmp_path, (0, 1))
    whole = saved(tmp_path)
    other = tmp_path / ".something.part"
    for name in (
        ".model_state_e0_b2.th.123.part",
        ".training_state_e0_b2.th.123.part",
        ".best.th.0a1b2c3d.123.part",
        ".metrics_epoch_0.json.0a1b2c3d.123.part",
        "model.tar.gz.123.part",
        "best.th.123.part",
        "training_state_e0_b2.th",
        "training_state_e0_b2_w1.th",
    ):
        (tmp_path / name).write_bytes(b"half")
    other.touch()
    (tmp_path / ".vocabulary.abc").mkdir()
    (tmp_path / ".vocabulary.abc" / "tokens.txt").write_text("half")
    assert loaded(tmp_path) == 1
    assert saved(tmp_path) == [other.name, *whole]


@contextmanager
def no_file_larger_than(limit: int) -> Iterator[None]:
    """Lets writing fail in the middle of a file, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "limit, state",
    # In the middle of the small file, and of the large one.
    [(0, "training"), (100, "training"), (50_000, "model")],
)
def test_a_full_disk_is_an_error_that_leaves_earlier_checkpoints(
    limit: int, state: str, tmp_path: Path
) -> None:
    checkpointer = save(tmp_path, (0, 1))
    whole = saved(tmp_path)
    message = f"{state}_state_e0_b2.*can't be written: File too large.*--recover"
    with no_file_larger_than(limit), pytest.raises(ConfigurationError, match=message):
        checkpointer.save_checkpoint(TinyTrainer(100_000).place(0, 2))
    assert loaded(tmp_path) == 1
    assert saved(tmp_path) == whole


@pytest.mark.parametrize("damage", ["empty", "half", "changed", "text", "gone"])
@pytest.mark.parametrize("state", ["model", "training"])
def test_a_damaged_checkpoint_is_set_aside(
    state: str, damage: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    save(tmp_path, (0, 1), (0, 2))
    file = tmp_path / f"{state}_state_e0_b2.th"
    content = file.read_bytes()
    damaged = {
        "empty": b"",
        "half": content[: len(content) // 2],
        # It reads as well as before.
        "changed": content.replace(b"weight", b"weighs").replace(b"completed", b"completes"),
        "text": b"this is no checkpoint",
    }
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(damaged[damage])
    with caplog.at_level(logging.WARNING, logger="elmo_scratch"):
        assert loaded(tmp_path) == 1
    if damage != "gone":
        assert "can't be read and is set aside" in caplog.text
        assert str(tmp_path / "model_state_e0_b2.th") in caplog.text
        assert len(list(tmp_path.glob("*_e0_b2.th.unreadable"))) == 2
    # It is not in the way of the one that takes its place, nor counted.
    caplog.clear()
    save(tmp_path, (0, 2), (0, 3))
    assert [name for name in saved(tmp_path) if name.startswith("model") and "un" not in name] == [
        "model e0_b2",
        "model e0_b3",
    ]
    assert loaded(tmp_path) == 3
    assert not caplog.text


def test_where_none_can_be_read_there_is_an_error_and_none_is_touched(tmp_path: Path) -> None:
    save(tmp_path, (0, 1), (0, 2))
    whole = saved(tmp_path)
    for file in tmp_path.glob("model_state_*.th"):
        file.write_bytes(b"no")
    with pytest.raises(
        ConfigurationError, match="none of the checkpoints can be read.*b2.*b1[^P]*$"
    ):
        loaded(tmp_path)
    assert saved(tmp_path) == whole


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    class Code:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "run"),)

    save(tmp_path, (0, 1), (0, 2))
    torch.save({"weight": Code()}, tmp_path / "model_state_e0_b2.th")
    assert loaded(tmp_path) == 1
    assert not (tmp_path / "run").exists()


def test_an_empty_folder_has_no_checkpoint(tmp_path: Path) -> None:
    assert loaded(tmp_path) is None


def test_each_worker_keeps_the_states_of_its_callbacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    callback = SimpleNamespace(state_dict=lambda: {"rank": 1})
    trainer = TinyTrainer().place(0, 1)
    trainer._callbacks = [callback]
    worker = WholeCheckpointer(tmp_path)
    worker._rank = 1
    monkeypatch.setattr(trainer, "get_checkpoint_state", lambda: None)
    worker.save_checkpoint(trainer)
    assert saved(tmp_path) == ["training e0_b1_w1"]
    # Not the first one's part, and not counted before there is a model.
    assert worker.load_checkpoint() is None
    first = WholeCheckpointer.__new__(WholeCheckpointer)
    first.__dict__.update({**worker.__dict__, "_rank": 0})
    first.save_checkpoint(TinyTrainer().place(0, 1))
    assert first.load_checkpoint().trainer_state["callbacks"] == []
    assert worker.load_checkpoint().trainer_state["callbacks"] == [{"rank": 1}]
    first.save_checkpoint(TinyTrainer().place(0, 2))
    first.save_checkpoint(TinyTrainer().place(0, 3))
    assert not list(tmp_path.glob("*e0_b1*"))


def test_the_first_worker_of_each_machine_removes_what_is_old(tmp_path: Path) -> None:
    # AllenNLP lets it write, but looks after the files of the very first one only.
    checkpointer = WholeCheckpointer(tmp_path, keep_most_recent_by_count=1)
    checkpointer._rank, checkpointer._writes = 2, False
    for batch in (1, 2, 3):
        checkpointer.save_checkpoint(TinyTrainer().place(0, batch))
    assert saved(tmp_path) == ["model e0_b3", "training e0_b3"]
