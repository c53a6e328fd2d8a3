"""Stops a training before NaN or infinity gets into the weights."""

import math
from typing import Any, Dict, List, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.nn.util import dist_reduce_sum
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback
from torch.utils.hooks import RemovableHandle


@TrainerCallback.register("elmo_scratch_stop_at_nan")
class StopAtNan(TrainerCallback):
    """
    Stops the training when a loss or a gradient is infinite or NaN, before the weights change, and
    when a weight is, before it is saved. So the last checkpoint is a good one.

    With the trainer's `grad_clipping` infinite gradients have been clipped before this callback can
    see them; NaN is still found. With `use_amp` the trainer itself skips steps with such gradients,
    and this callback checks only losses and weights.

    Registered as a `TrainerCallback` with name "elmo_scratch_stop_at_nan".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.

    # Raises

    ConfigurationError
        If a loss, gradient or weight is not finite. The message names the epoch, the batch and the
        last checkpoint.
    """

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        self._hooks: List[RemovableHandle] = []

    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        # Hooks, because the trainer's own callbacks come too late: it checks the loss before the
        # first one, and changes the weights before the next one.
        self._hooks = [
            trainer._pytorch_model.register_forward_hook(self._check_loss),
            trainer.optimizer.register_step_pre_hook(self._check_gradients),
        ]

    def on_end(
        self,
        trainer: GradientDescentTrainer,
        metrics: Optional[Dict[str, Any]] = None,
        epoch: Optional[int] = None,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        for hook in self._hooks:
            hook.remove()

    def state_dict(self) -> Dict[str, Any]:
        # The trainer asks for the state at each checkpoint, before anything is written.
        weights = [(name, weight.detach()) for name, weight in self._parameters()]
        self._check("the weights of", weights, of_next_batch=False)
        return {}

    def _check_loss(
        self, model: torch.nn.Module, inputs: Tuple[Any, ...], outputs: Dict[str, Any]
    ) -> None:
        if not model.training or "loss" not in outputs:
            return
        loss = outputs["loss"]
        has_diverged = not bool(loss.isfinite().all())
        # All workers stop: workers of other machines would wait for one that is gone.
        if dist_reduce_sum(int(has_diverged)):
            own = f"the loss is {loss.item()}"
            self._stop(own if has_diverged else "the loss of another worker is not finite")

    def _check_gradients(self, *step: Any) -> None:
        gradients = [
            (name, weight.grad._values() if weight.grad.is_sparse else weight.grad)
            for name, weight in self._parameters()
            if weight.grad is not None
        ]
        if gradients and not isinstance(self._running()._grad_norm, bool):
            # Clipping by a norm that is infinite or NaN makes all gradients zero or NaN, so that
            # the smallest gradient shows whether all are finite.
            smallest = min((gradient for _, gradient in gradients), key=torch.Tensor.numel)
            if 0.0 < smallest.abs().sum().item() < math.inf:
                return
        self._check("the gradient of", gradients)

    def _check(
        self, what: str, named: List[Tuple[str, torch.Tensor]], of_next_batch: bool = True
    ) -> None:
        if not named:
            return
        # If any number is not finite, neither is the sum; so one question to the device is enough.
        sums = torch.stack([numbers.sum(dtype=torch.float) for _, numbers in named])
        if not bool(sums.sum().isfinite()):
            for name, numbers in named:
                if not bool(numbers.isfinite().all()):
                    self._stop(f"{what} {name} is not finite", of_next_batch)

    def _stop(self, why: str, of_next_batch: bool = True) -> None:
        trainer = self._running()
        checkpoint = trainer._checkpointer and trainer._checkpointer.find_latest_checkpoint()
        kept = f"is {checkpoint[0]}" if checkpoint else "does not exist: none was written yet"
        batch = trainer._batches_in_epoch_completed + of_next_batch
        step = trainer._total_batches_completed + of_next_batch
        raise ConfigurationError(
            f"The training has diverged: {why} in epoch {trainer._epochs_completed}, batch {batch} "
            f"(step {step}). The last good checkpoint {kept}; nothing was written after it. Try a "
            "lower learning rate, or clip gradients with the trainer's `grad_norm`."
        )

    def _parameters(self) -> List[Tuple[str, torch.nn.Parameter]]:
        return list(self._running().model.named_parameters())

    def _running(self) -> GradientDescentTrainer:
        assert self.trainer is not None
        return self.trainer
