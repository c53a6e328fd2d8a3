"""Tells early in a training how long it takes."""

import time
from statistics import median
from typing import Any, Dict, List, Optional

from allennlp.data import TensorDict
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback

from elmo_scratch.terminal import counted
from elmo_scratch_compat.terminal import tell

NUM_BATCHES = 25
"""As many batches are timed; the first of them, which also warm up, hardly move their median."""

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


@TrainerCallback.register("elmo_scratch_forecast")
class Forecast(TrainerCallback):
    """
    Says after 25 batches, and again after the first epoch, which also counts validation, how long
    the rest of the training takes if it goes on as fast. The terminal of a quiet `allennlp train`
    and the log get the line.

    Registered as a `TrainerCallback` with name "elmo_scratch_forecast".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    """

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        self._times: List[float] = []
        self._began: Optional[float] = None

    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        self._began = time.monotonic()

    def on_batch(
        self,
        trainer: GradientDescentTrainer,
        batch_inputs: List[TensorDict],
        batch_outputs: List[Dict[str, Any]],
        batch_metrics: Dict[str, Any],
        epoch: int,
        batch_number: int,
        is_training: bool,
        is_primary: bool = True,
        batch_grad_norm: Optional[float] = None,
        **kwargs: Any,
    ) -> None:
        if not (is_training and is_primary) or len(self._times) > NUM_BATCHES:
            return
        self._times.append(time.monotonic())
        if len(self._times) == NUM_BATCHES + 1:
            a_batch = median(
                after - before for before, after in zip(self._times, self._times[1:], strict=False)
            )
            # The trainer calls this once for the batches whose gradients it adds up.
            steps = -(-len(trainer.data_loader) // trainer._num_gradient_accumulation_steps)
            left = (trainer._num_epochs - epoch) * steps - batch_number
            tell(f"{in_words(a_batch * left)} to go, by the first {NUM_BATCHES} batches")

    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        left = trainer._num_epochs - epoch - 1
        if self._began is not None and is_primary and left > 0:
            an_epoch = time.monotonic() - self._began
            tell(f"{in_words(an_epoch * left)} to go, by the first epoch")
        self._began = None


def in_words(seconds: float) -> str:
    """Returns a time as one says it: `"about 40 seconds"`, `"about 12 minutes"`."""
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 1.95 * unit:
            number = seconds / unit
            return f"about {number:.1f} {name}" if number < 9.95 else f"about {number:.0f} {name}"
    return f"about {counted(max(1, round(seconds)), 'second')}"
