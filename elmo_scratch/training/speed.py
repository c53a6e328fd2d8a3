"""How fast a training is."""

import time
from typing import Any, Dict, List, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.data import TensorDict
from allennlp.nn.util import dist_reduce_sum
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback

from elmo_scratch.training.epoch_metrics import add_to_epoch_metrics


@TrainerCallback.register("elmo_scratch_speed")
class Speed(TrainerCallback):
    """
    Adds `training_tokens_per_second` to the metrics of each epoch: of all workers together, from
    the end of the first batch to the end of the last one, so without the start and the validation,
    and with the checkpoints in between. An epoch of one batch has no such number.

    Registered as a `TrainerCallback` with name "elmo_scratch_speed".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.

    # Raises

    ConfigurationError
        If the model's outputs have no `num_tokens`.
    """

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        self._num_tokens = 0
        self._first: Optional[float] = None
        self._last = 0.0

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
        if not is_training:
            return
        self._last = time.perf_counter()
        if self._first is None:
            self._first = self._last
            return
        for outputs in batch_outputs:
            if "num_tokens" not in outputs:
                raise ConfigurationError(
                    "`elmo_scratch_speed` needs a model that returns `num_tokens`, but "
                    f"{type(trainer.model).__name__} returns only {', '.join(sorted(outputs))}"
                )
            self._num_tokens += int(outputs["num_tokens"])

    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        num_tokens = dist_reduce_sum(self._num_tokens)
        metrics.pop("training_tokens_per_second", None)
        if self._first is not None and self._last > self._first and is_primary:
            speed = num_tokens / (self._last - self._first)
            numbers = {"training_tokens_per_second": speed}
            add_to_epoch_metrics(self.serialization_dir, metrics, epoch, numbers)
        self._num_tokens = 0
        self._first = None
