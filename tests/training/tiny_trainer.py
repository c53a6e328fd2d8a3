"""A trainer that does nothing but be saved."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, List

import torch
from allennlp.training import GradientDescentTrainer
from allennlp.training.trainer import TrainerCheckpoint

from elmo_scratch.training.checkpointer import LOCK
from elmo_scratch.training.environment import ENVIRONMENT


class TinyTrainer(GradientDescentTrainer):
    """One that was never built: it has weights and a place, and saves as the real one does."""

    def __init__(self, size: int = 1) -> None:
        self._size = size
        self._callbacks: List[Any] = []
        self._ddp_wrapped_model = None
        self.model: Any = SimpleNamespace(
            state_dict=lambda: self.get_checkpoint_state().model_state
        )
        self.place(0, 0)

    def place(self, epochs: int, batches: int) -> "TinyTrainer":
        self._epochs_completed, self._batches_in_epoch_completed = epochs, batches
        return self

    def get_checkpoint_state(self) -> TrainerCheckpoint:
        number = 100 * self._epochs_completed + self._batches_in_epoch_completed
        place = {
            "epochs_completed": self._epochs_completed,
            "batches_in_epoch_completed": self._batches_in_epoch_completed,
            "callbacks": [],
        }
        return TrainerCheckpoint({"weight": torch.full((self._size,), float(number))}, place)


def saved(folder: Path) -> List[str]:
    """The names of the files of checkpoints, without what all of them have."""
    return sorted(
        file.name.replace("_state_", " ").removesuffix(".th")
        for file in folder.iterdir()
        if file.name not in (LOCK, ENVIRONMENT)
    )
