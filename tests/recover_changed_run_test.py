"""What may have changed when a training is recovered, and what is told."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict

import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.training import ExactResume
from elmo_scratch.training.environment import gathered
from elmo_scratch.training.exact_resume import random_state
from tests.metrics.workers import run_in_two_workers
from tests.training.tiny_runs import run, run_until, tiny_config

CPU = torch.device("cpu")


def config_whose_first_epoch_is_best() -> Dict[str, Any]:
    config = tiny_config(optimizer={"type": "sgd", "lr": 0.0}, moving_average=None)
    config["model"]["bilm"]["state"] = "reset"
    config["validation_data_loader"] = {"batch_size": 8}
    return config


def best_epoch(folder: Path) -> int:
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["best_epoch"]


def test_the_folder_may_have_been_moved(tmp_path: Path) -> None:
    config = config_whose_first_epoch_is_best()
    run_until((1, 3, True), config, tmp_path / "run")
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    run(config, moved, recover=True)
    assert best_epoch(moved) == 0


def test_the_folder_may_be_named_from_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_whose_first_epoch_is_best()
    monkeypatch.chdir(tmp_path)
    run_until((1, 3, True), config, Path("run"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run(config, Path("../run"), recover=True)
    assert best_epoch(tmp_path / "run") == 0


def with_callbacks(config: Dict[str, Any], folder: Path, *callbacks: str) -> Dict[str, Any]:
    """The config with other callbacks, there and in the folder of its training."""
    config["trainer"]["callbacks"] = list(callbacks)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return config


def test_callbacks_in_another_order_are_told(tmp_path: Path) -> None:
    folder, own = tmp_path / "run", "elmo_scratch_exact_resume"
    run_until((1, 3, True), tiny_config(), folder)
    before = sorted(file.name for file in folder.glob("*.th"))
    changed = with_callbacks(tiny_config(), folder, "elmo_scratch_speed", own, "tests_interrupt")
    with pytest.raises(
        ConfigurationError, match=f"`{own}` was number 1 of its callbacks and is number 2 now"
    ):
        run(changed, folder, recover=True)
    assert sorted(file.name for file in folder.glob("*.th")) == before
    added = with_callbacks(tiny_config(), folder, own, "tests_interrupt", "elmo_scratch_speed")
    run(added, folder, recover=True)
    assert "without `elmo_scratch_exact_resume`" not in (folder / "out.log").read_text()


def check_worker(rank: int) -> None:
    torch.manual_seed(13)
    state = random_state(CPU)
    follows = torch.rand(3).tolist()
    drawn = {}
    for rank_of_state in (0, rank):
        callback = ExactResume("")
        trainer: Any = SimpleNamespace(cuda_device=CPU, _scaler=None, _callbacks=[])
        callback.trainer = trainer
        callback._saved = {"rank": rank_of_state, "random": state}
        callback._goes_on_at = (1, 0)
        callback._epoch_starts = [state]
        callback._before_drawing(0, 0)
        # What is replayed is drawn as it was.
        assert torch.rand(3).tolist() == follows
        callback._before_drawing(1, 0)
        drawn[rank_of_state] = torch.rand(3).tolist()
    # A worker that was there before goes on with its own state, and so does the first.
    assert drawn[rank] == follows
    of_first, of_second = gathered(drawn[0])
    assert of_first != of_second


def check_worker_without_a_state(rank: int) -> None:
    torch.manual_seed(13)
    callback = ExactResume("")
    callback.trainer = SimpleNamespace(  # type: ignore[assignment]
        cuda_device=CPU, _scaler=None, _callbacks=[]
    )
    callback._goes_on_at = (0, 2)
    callback._before_drawing(0, 2)
    of_first, of_second = gathered(torch.rand(3).tolist())
    assert of_first != of_second


def test_workers_whose_states_were_not_kept_draw_numbers_of_their_own(tmp_path: Path) -> None:
    run_in_two_workers(check_worker_without_a_state, tmp_path)


def test_a_worker_that_is_added_draws_numbers_of_its_own(tmp_path: Path) -> None:
    run_in_two_workers(check_worker, tmp_path)
