"""Callbacks that add metrics to an epoch: speed, norms, shares of layers, averaged weights."""

import json
import logging
import math
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import TensorDict
from allennlp.nn.util import dist_reduce_sum
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.callbacks.log_writer import LogWriterCallback
from torch.utils.hooks import RemovableHandle

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.modules import LayerMix, LstmStack, OutputSoftmax, ProjectedLstm, TokenEncoder
from elmo_scratch.modules.lstm import StackOutput


@contextmanager
def averaged_weights(trainer: GradientDescentTrainer) -> Iterator[None]:
    """
    While the block runs, a model whose trainer has a `moving_average` has the averaged weights, as
    in validation and in the archive; any other model has its own.
    """
    average = trainer._moving_average
    if average is None:
        yield
        return
    average.assign_average_value()
    try:
        yield
    finally:
        average.restore()


def add_to_epoch_metrics(
    folder: str, metrics: Dict[str, Any], epoch: int, numbers: Dict[str, float]
) -> None:
    """
    Adds numbers to an epoch's metrics, and writes its `metrics_epoch_*.json` anew. To be called in
    `TrainerCallback.on_epoch` of the first worker.

    # Parameters

    folder : `str`
        Where the trainer writes to.
    metrics : `Dict[str, Any]`
        What the callback was given; all callbacks of the training share it.
    epoch : `int`
        The number of the epoch.
    numbers : `Dict[str, float]`
        By name.
    """
    metrics.update(numbers)
    if folder:
        with atomic_write(Path(folder) / f"metrics_epoch_{epoch}.json") as part:
            part.write_text(json.dumps(metrics, indent=2), encoding="utf-8")


@TrainerCallback.register("elmo_scratch_mix_shares")
class MixShares(TrainerCallback):
    """
    Adds to the metrics of each epoch, as they are at its end and in the model that is kept of it:

    - `layer_share_<mix>.<layer>`, how much of what a mix gives each layer makes up; layer 0 is the
      token layer;
    - `gamma_<mix>`, its scale, where it has one.

    Mixes are called by their place in the model, such as
    `text_field_embedder.token_embedder_elmo.mix`. Where the trainer has a callback for TensorBoard
    or Weights & Biases, those of the weights as they are trained go there, from the first batch on.

    Registered as a `TrainerCallback` with name "elmo_scratch_mix_shares".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    every_num_batches : `int`, optional (default = `100`)
        How many batches of the training lie between two points of a curve in TensorBoard.

    # Raises

    ConfigurationError
        If that is less than 1; later, if the model mixes no layers.
    """

    def __init__(self, serialization_dir: str, every_num_batches: int = 100) -> None:
        super().__init__(serialization_dir)
        if every_num_batches < 1:
            raise ConfigurationError(
                f"expected an `every_num_batches` of 1 or more, but got {every_num_batches}"
            )
        self._every = every_num_batches

    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        if not mix_numbers(trainer.model):
            raise ConfigurationError(
                "`elmo_scratch_mix_shares` needs a model with an embedder that mixes the layers of "
                f"a biLM, but {type(trainer.model).__name__} has none"
            )

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
        if is_training and is_primary and (trainer._total_batches_completed - 1) % self._every == 0:
            for writer in trainer._callbacks:
                if isinstance(writer, LogWriterCallback):
                    writer.log_scalars(mix_numbers(trainer.model), log_prefix="mix")

    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        if is_primary:
            with averaged_weights(trainer):
                numbers = mix_numbers(trainer.model)
            add_to_epoch_metrics(self.serialization_dir, metrics, epoch, numbers)


def mix_numbers(model: torch.nn.Module) -> Dict[str, float]:
    """
    # Returns

    `Dict[str, float]`
        Of every mix of the model, `layer_share_<mix>.<layer>` of each layer, and `gamma_<mix>` if
        it has a scale.
    """
    numbers: Dict[str, float] = {}
    for name, module in model.named_modules():
        if isinstance(module, LayerMix):
            for layer, share in enumerate(module.shares().tolist()):
                numbers[f"layer_share_{name}.{layer}"] = share
            gamma = getattr(module, "gamma", None)
            if gamma is not None:
                numbers[f"gamma_{name}"] = gamma.item()
    return numbers


logger = logging.getLogger(__name__)


@TrainerCallback.register("elmo_scratch_norms")
class Norms(TrainerCallback):
    """
    Measures the first batch of the training and every so many after it. It logs each measurement,
    and adds the means over an epoch to the epoch's metrics:

    - `training_gradient_norm`, of all gradients together, and `training_gradient_norm_<part>`, of
      those of the token encoder, of each LSTM layer, of the softmax and of `rest`, all before they
      are clipped to a `grad_norm`;
    - `training_activation_norm_<stack>.<layer>`, the mean length of the vector of a position after
      each layer of an LSTM stack; layer 0 is what the stack reads.

    Parts and stacks are called by their place in the model, such as `bilm.left_to_right.layers.0`.
    In distributed training these are numbers of the first worker.

    Registered as a `TrainerCallback` with name "elmo_scratch_norms".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    every_num_batches : `int`, optional (default = `100`)
        From one measurement to the next.

    # Raises

    ConfigurationError
        If that is less than 1.
    """

    def __init__(self, serialization_dir: str, every_num_batches: int = 100) -> None:
        super().__init__(serialization_dir)
        if every_num_batches < 1:
            raise ConfigurationError(
                f"expected an `every_num_batches` of 1 or more, but got {every_num_batches}"
            )
        self._every = every_num_batches
        self._hooks: List[RemovableHandle] = []
        self._batch: Dict[str, List[float]] = {}
        self._epoch: Dict[str, List[float]] = {}

    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        modules = trainer.model.named_modules()
        stacks = {module: name for name, module in modules if isinstance(module, LstmStack)}

        def measure(stack: LstmStack, inputs: Tuple[Any, ...], output: StackOutput) -> None:
            # Of several workers this one may have no text left.
            has_text = bool(inputs[0].numel())
            if stack.training and has_text and self._is_wanted(trainer._total_batches_completed):
                for number, layer in enumerate([inputs[0], *output.layers]):
                    length = layer.detach().float().norm(dim=-1).mean().item()
                    name = f"activation_norm_{stacks[stack]}.{number}"
                    self._batch.setdefault(name, []).append(length)

        if is_primary:
            self._hooks = [stack.register_forward_hook(measure) for stack in stacks]

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
        if not is_training or not is_primary:
            return
        if not self._is_wanted(trainer._total_batches_completed - 1):
            return
        # AllenNLP doesn't clip then, and has measured gradients of a loss that was scaled.
        is_scaled = trainer._scaler is not None and isinstance(trainer._grad_norm, bool)
        measured = gradient_norms(trainer.model, None if is_scaled else batch_grad_norm)
        measured.update(means_of(self._batch))
        self._batch.clear()
        if trainer._scaler is not None and not math.isfinite(measured["gradient_norm"]):
            return  # The scale was too high, and the trainer has passed the batch over.
        for name, norm in measured.items():
            self._epoch.setdefault(f"training_{name}", []).append(norm)
        numbers = ", ".join(f"{name} {norm:.4g}" for name, norm in measured.items())
        logger.info("Norms of epoch %d, batch %d: %s", epoch, batch_number, numbers)

    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        for name in [name for name in metrics if name.startswith(PREFIXES)]:
            del metrics[name]
        if is_primary:
            add_to_epoch_metrics(self.serialization_dir, metrics, epoch, means_of(self._epoch))
        self._epoch.clear()

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

    def _is_wanted(self, num_batches_before: int) -> bool:
        return num_batches_before % self._every == 0


PREFIXES = ("training_gradient_norm", "training_activation_norm")

PARTS = (TokenEncoder, ProjectedLstm, OutputSoftmax)
"""What has a gradient norm of its own."""


def gradient_norms(model: torch.nn.Module, total: Optional[float] = None) -> Dict[str, float]:
    """
    # Parameters

    model : `torch.nn.Module`
        With gradients, perhaps clipped.
    total : `float`, optional (default = `None`)
        The norm of all of them before that.

    # Returns

    `Dict[str, float]`
        `gradient_norm` of all, and `gradient_norm_<part>` of each part, before that.
    """
    parts = [name for name, module in model.named_modules() if isinstance(module, PARTS)]
    squares: Dict[str, float] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            part = next((part for part in parts if name.startswith(f"{part}.")), "rest")
            gradient = parameter.grad
            # Of rows that occur more than once in a sparse gradient the sum counts.
            values = gradient.coalesce()._values() if gradient.is_sparse else gradient
            squares[part] = squares.get(part, 0.0) + values.float().norm().item() ** 2
    now = sum(squares.values()) ** 0.5
    scale = 1.0 if total is None or now == 0.0 else total / now
    norms = {f"gradient_norm_{part}": square**0.5 * scale for part, square in squares.items()}
    return {"gradient_norm": now * scale, **norms}


def means_of(measured: Dict[str, List[float]]) -> Dict[str, float]:
    """The mean of each list."""
    return {name: sum(numbers) / len(numbers) for name, numbers in measured.items()}


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
