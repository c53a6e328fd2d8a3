import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests import PROJECT_ROOT
from tests.tiny_training import CONFIGS, EXT_VARS

EPOCHS = 4
LEARNING_RATE = 0.01  # of the config
PATIENCE = 300  # seconds; it takes a tenth of that

# Half a wave of the cosine in twice as many epochs: after them the learning rate is halved.
OVERRIDES = {
    "trainer.num_epochs": EPOCHS,
    "trainer.learning_rate_scheduler": {"type": "cosine", "t_initial": 2 * EPOCHS},
}

# PyTorch itself applies the first line where the package is installed. Other plugins have nothing
# to add, and importing them takes long.
PROGRAM = """
import torch, elmo_scratch_compat; elmo_scratch_compat.apply()
import allennlp.commands
allennlp.commands.import_plugins = lambda: None
allennlp.commands.main("allennlp")
"""


def start_training(folder: Path, *options: str) -> subprocess.Popen:
    """`allennlp train` in a process of its own; what it says on stderr is beside the folder."""
    words = ["train", str(CONFIGS / "bilm" / "fixture.jsonnet"), "-s", str(folder)]
    words += ["--include-package", "elmo_scratch", "--overrides", json.dumps(OVERRIDES), *options]
    path = os.pathsep.join([str(PROJECT_ROOT), os.environ.get("PYTHONPATH", "")])
    with open(errors_of(folder), "w") as errors:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            env={**os.environ, **EXT_VARS, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def errors_of(folder: Path) -> Path:
    return folder.with_suffix(".errors")


def logged(folder: Path, message: str) -> int:
    """How many lines of a training's log hold this message."""
    log = folder / "out.log"
    return log.read_text(encoding="utf-8").count(f" - {message}") if log.exists() else 0


@pytest.mark.exhaustive
def test_a_training_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    training = start_training(folder)
    deadline = time.monotonic() + PATIENCE
    try:
        # Once the second epoch has begun, all of the first one's checkpoint is on the disk.
        while not logged(folder, f"Epoch 1/{EPOCHS - 1}"):
            assert training.poll() is None, errors_of(folder).read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        training.kill()
    assert training.wait() == -signal.SIGKILL
    assert not (folder / "model.tar.gz").exists()
    # Nearly always one epoch; more only where the machine was too busy to notice.
    completed = len(list(folder.glob("training_state_*.th")))
    assert 1 <= completed < EPOCHS
    durations = logged(folder, "Epoch duration")
    finished = [folder / f"metrics_epoch_{epoch}.json" for epoch in range(completed)]
    written = [(file.stat().st_mtime_ns, file.read_bytes()) for file in finished]

    recovered = start_training(folder, "--recover")
    assert recovered.wait(PATIENCE) == 0, errors_of(folder).read_text()
    # No epoch that was finished is done again, and every other one is.
    assert [(file.stat().st_mtime_ns, file.read_bytes()) for file in finished] == written
    assert logged(folder, "Epoch duration") - durations == EPOCHS - completed
    assert len(list(folder.glob("metrics_epoch_*.json"))) == EPOCHS
    assert (folder / "model.tar.gz").exists()
    # The scheduler has gone on too.
    state = torch.load(folder / f"training_state_e{EPOCHS}_b0.th", weights_only=False)
    assert state["optimizer"]["param_groups"][0]["lr"] == pytest.approx(LEARNING_RATE / 2)
