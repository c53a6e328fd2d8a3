import json
import platform
from pathlib import Path

import pytest
import torch

from elmo_scratch import VERSION
from elmo_scratch.training import environment as module
from elmo_scratch.training.checkpointer import WholeCheckpointer
from elmo_scratch.training.environment import ENVIRONMENT, environment, write_environment
from tests.training.tiny_trainer import TinyTrainer


def test_a_training_leaves_what_it_runs_on(tmp_path: Path) -> None:
    checkpointer = WholeCheckpointer(tmp_path)
    # Not before its first step: a recovery that is refused leaves the folder as it was.
    assert not (tmp_path / ENVIRONMENT).exists()
    checkpointer.maybe_save_checkpoint(TinyTrainer(), 0, 1)
    found = json.loads((tmp_path / ENVIRONMENT).read_text(encoding="utf-8"))
    assert found["versions"]["elmo_scratch"] == VERSION
    assert found["versions"]["PyTorch"] == torch.__version__
    assert found["versions"]["Python"] == platform.python_version()
    assert found["num_processors"] >= 1 and found["processor"]
    assert found["started"].endswith("+00:00")


def test_what_the_system_does_not_say_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "machine_memory", lambda: float("inf"))
    assert "memory_bytes" not in environment()
    monkeypatch.setattr(module, "machine_memory", lambda: 2.0**30)
    assert environment()["memory_bytes"] == 2**30


def test_a_training_goes_on_where_it_cant_be_written(tmp_path: Path) -> None:
    write_environment(tmp_path / "none")
    assert not (tmp_path / "none").exists()
