"""Trainings of three epochs of five batches, which can be stopped anywhere and compared."""

from itertools import zip_longest
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.models import Model
from allennlp.training.callbacks import TrainerCallback

import elmo_scratch.training  # noqa: F401  (registers what the configs name)
from tests.tiny_training import CONFIGS, config_on_fixtures, logging_as_before

EPOCHS, BATCHES = 3, 5

Place = Tuple[int, int, bool]
"""The number of an epoch, of a batch in it from 1 on, and whether it is of the training."""


class Interrupted(Exception):
    """What ends a training early here."""


@TrainerCallback.register("tests_interrupt")
class Interrupt(TrainerCallback):
    """Raises `Interrupted` after the batch `at`, which is not in the config."""

    at: Optional[Place] = None

    def on_batch(
        self,
        trainer: Any,
        batch_inputs: Any,
        batch_outputs: Any,
        batch_metrics: Any,
        epoch: int,
        batch_number: int,
        is_training: bool,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if (epoch, batch_number, is_training) == self.at:
            raise Interrupted


def tiny_config(**trainer: Any) -> Dict[str, Any]:
    """
    A tiny biLM that carries its state, with dropout, shuffling, a scheduler by the batch and
    moving averages. Its validation draws random numbers too.
    """
    config = config_on_fixtures(CONFIGS / "bilm" / "fixture.jsonnet")
    config["dataset_reader"]["max_instances"] = 8 * BATCHES
    # White space separates the words already, and rules of a language take long to build.
    del config["dataset_reader"]["tokenizer"]
    config["model"]["bilm"] = {
        "token_encoder": {"type": "word", "dim": 5},
        "cell_size": 7,
        "dropout": 0.3,
        "state": "carry",
    }
    config["validation_data_loader"] = config["data_loader"]
    config["data_loader"] = {"batch_size": 8, "shuffle": True}
    config["trainer"] = {
        "num_epochs": EPOCHS,
        "optimizer": {"type": "adam", "lr": 0.03},
        "learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 4},
        "moving_average": {"type": "exponential", "decay": 0.9},
        "grad_norm": 1.0,
        "validation_metric": "-perplexity",
        "cuda_device": -1,
        "checkpointer": {"type": "elmo_scratch_whole", "save_every_num_batches": 2},
        "callbacks": ["elmo_scratch_exact_resume", "tests_interrupt"],
        **trainer,
    }
    return config


def run(config: Dict[str, Any], folder: Path, recover: bool = False) -> Model:
    """`allennlp train`, in this process."""
    with logging_as_before():
        model = train_model(Params(config).duplicate(), str(folder), recover=recover)
    assert model is not None
    return model


def run_until(at: Place, config: Dict[str, Any], folder: Path, recover: bool = False) -> None:
    """Trains until `Interrupted` is raised after a batch."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(Interrupt, "at", at)
        run(config, folder, recover)


def outcome(folder: Path, epochs: int = EPOCHS) -> Dict[str, Any]:
    """All that a training has come to: weights, the best ones, and the training state."""
    states = {
        name: torch.load(folder / f"{name}.th", weights_only=True)
        for name in (f"model_state_e{epochs}_b0", f"training_state_e{epochs}_b0", "best")
    }
    # A path, and not yet known in the first epoch.
    del states[f"training_state_e{epochs}_b0"]["best_model_filename"]
    return states


def differences(one: Any, other: Any, place: str = "") -> Dict[str, Any]:
    """Where two outcomes differ in a single bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        parts = {key: (one.get(key), other.get(key)) for key in [*one, *other]}
    elif isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        parts = dict(enumerate(zip_longest(one, other)))
    else:
        is_tensor = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
        is_same = torch.equal(one, other) if is_tensor else one == other
        return {} if is_same else {place: (one, other)}
    found: Dict[str, Any] = {}
    for key, (part, twin) in parts.items():
        found.update(differences(part, twin, f"{place}/{key}"))
    return found
