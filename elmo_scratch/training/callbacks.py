"""
Callbacks that add metrics to an epoch (speed, norms, shares of layers), tell how long a training
takes, and stop it before NaN gets into the weights; and the block in which a model has its averaged
weights.
"""

import json
import logging
import math
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, Union

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
from elmo_scratch.terminal import counted
from elmo_scratch_compat.terminal import tell

logger = logging.getLogger(__name__)


@contextmanager
def averaged_weights(trainer: GradientDescentTrainer) -> Iterator[None]:
    """
    Gives the model the averaged weights during the block if the trainer has a `moving_average`, as
    in validation and in the archive.
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
    Adds numbers to an epoch's metrics, which all callbacks share, and writes the file
    `metrics_epoch_*.json` of the trainer's folder anew. Only the first worker may call this, in
    `TrainerCallback.on_epoch`.
    """
    metrics.update(numbers)
    if folder:
        with atomic_write(Path(folder) / f"metrics_epoch_{epoch}.json") as part:
            part.write_text(json.dumps(metrics, indent=2), encoding="utf-8")


@TrainerCallback.register("elmo_scratch_mix_shares")
class MixShares(TrainerCallback):
    """
    Adds the shares of layers in mixes to the metrics of each epoch:

    - `layer_share_<mix>.<layer>`, a layer's share of the mix; layer 0 is the token layer;
    - `gamma_<mix>`, the scale of a mix, if it has one.

    The numbers are those of the model that is saved at the end of the epoch, with averaged weights
    if the trainer has a `moving_average`. A mix is named by its place in the model, such as
    `text_field_embedder.token_embedder_elmo.mix`. A callback of the trainer for TensorBoard or
    Weights & Biases gets the numbers of the weights in training, from the first batch on.

    Registered as a `TrainerCallback` with name "elmo_scratch_mix_shares".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    every_num_batches : `int`, optional (default = `100`)
        The number of training batches from one point of a curve in TensorBoard to the next.

    # Raises

    ConfigurationError
        If `every_num_batches` is less than 1; at the start of a training, if the model has no mix.
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
    """Returns `layer_share_<mix>.<layer>`, and `gamma_<mix>` if there is one, for every mix."""
    numbers: Dict[str, float] = {}
    for name, module in model.named_modules():
        if isinstance(module, LayerMix):
            for layer, share in enumerate(module.shares().tolist()):
                numbers[f"layer_share_{name}.{layer}"] = share
            gamma = getattr(module, "gamma", None)
            if gamma is not None:
                numbers[f"gamma_{name}"] = gamma.item()
    return numbers


PREFIXES = ("training_gradient_norm", "training_activation_norm")
"""How the metrics of `Norms` begin; AllenNLP carries them into the next epoch."""


@TrainerCallback.register("elmo_scratch_norms")
class Norms(TrainerCallback):
    """
    Measures norms in the first training batch and in every `every_num_batches`-th after it. It logs
    each measurement, and adds the means over an epoch to the epoch's metrics:

    - `training_gradient_norm`, the norm of all gradients together, and
      `training_gradient_norm_<part>`, the norm of a part's gradients: the token encoder, each LSTM
      layer, the softmax and the `rest`. All are norms before gradients are clipped by `grad_norm`;
    - `training_activation_norm_<stack>.<layer>`, the mean norm of a position's vector after each
      layer of an LSTM stack; layer 0 is the input of the stack.

    Parts and stacks are named by their place in the model, such as `bilm.left_to_right.layers.0`.
    In distributed training the numbers are those of the first worker.

    Registered as a `TrainerCallback` with name "elmo_scratch_norms".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    every_num_batches : `int`, optional (default = `100`)
        The number of training batches from one measurement to the next.

    # Raises

    ConfigurationError
        If `every_num_batches` is less than 1.
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
            read: torch.Tensor = inputs[0].vectors
            # In distributed training this worker may have no text left.
            has_text = bool(read.numel())
            if stack.training and has_text and self._is_wanted(trainer._total_batches_completed):
                for number, layer in enumerate([read, *output.layers]):
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
        # With a scaler and no clipping, AllenNLP's norm is that of gradients of the scaled loss.
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


PARTS = (TokenEncoder, ProjectedLstm, OutputSoftmax)
"""Modules that get a gradient norm of their own."""


def gradient_norms(model: torch.nn.Module, total: Optional[float] = None) -> Dict[str, float]:
    """
    Returns `gradient_norm`, and `gradient_norm_<part>` of each part of the model. If the gradients
    have been clipped, `total` is their norm before, and the result is the norms before.
    """
    parts = [name for name, module in model.named_modules() if isinstance(module, PARTS)]
    squares: Dict[str, float] = {}
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            part = next((part for part in parts if name.startswith(f"{part}.")), "rest")
            gradient = parameter.grad
            # A row may occur several times in a sparse gradient: the sum of them counts.
            values = gradient.coalesce()._values() if gradient.is_sparse else gradient
            squares[part] = squares.get(part, 0.0) + values.float().norm().item() ** 2
    now = sum(squares.values()) ** 0.5
    scale = 1.0 if total is None or now == 0.0 else total / now
    norms = {f"gradient_norm_{part}": square**0.5 * scale for part, square in squares.items()}
    return {"gradient_norm": now * scale, **norms}


def means_of(measured: Dict[str, List[float]]) -> Dict[str, float]:
    """The mean of each list."""
    return {name: sum(numbers) / len(numbers) for name, numbers in measured.items()}


def num_text_tokens(inputs: TensorDict) -> Optional[torch.Tensor]:
    """
    How many tokens the texts of a batch have, as AllenNLP's text fields lay them out: a tensor of
    shape `()`. `None` if there is no text, or if it can't be told, as of lists of texts.
    """
    total: Optional[torch.Tensor] = None
    fields: Iterable[Any] = inputs.values()
    for field in fields:
        if isinstance(field, dict) and all(isinstance(part, dict) for part in field.values()):
            mask = _text_mask(field)
            if mask is None:
                return None
            total = mask.sum() if total is None else total + mask.sum()
    return total


def _text_mask(field: Dict[str, Dict[str, torch.Tensor]]) -> Optional[torch.Tensor]:
    """Where a text has tokens, shape `(batch, tokens)`; `None` if that can't be told."""
    tensors = [(name, ids) for part in field.values() for name, ids in part.items()]
    masks = [(name, mask) for name, mask in tensors if name == "mask"]
    name, ids = min(masks or tensors, key=lambda one: one[1].dim(), default=("", torch.empty(0)))
    if ids.dim() == 2:
        return ids != 0
    # Ids of characters have an axis more; ids of words have three in a list of texts.
    return (ids != 0).any(dim=-1) if ids.dim() == 3 and name not in ("tokens", "mask") else None


@TrainerCallback.register("elmo_scratch_speed")
class Speed(TrainerCallback):
    """
    Adds `training_tokens_per_second` of all workers together to the metrics of each epoch. The time
    runs from the end of the first batch to the end of the last one: it includes checkpoints in
    between, but neither the start nor the validation. An epoch of one batch has no such number.

    Tokens are those that the model returns as `num_tokens`, or those of all texts of its inputs.
    Trainings of models with a part of this package have this callback without naming it.

    Registered as a `TrainerCallback` with name "elmo_scratch_speed".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.
    may_be_unknown : `bool`, optional (default = `False`)
        Whether a model that neither counts tokens nor reads texts has no such number, and no error.

    # Raises

    ConfigurationError
        If the model's outputs have no `num_tokens`, and its inputs no texts.
    """

    def __init__(self, serialization_dir: str, may_be_unknown: bool = False) -> None:
        super().__init__(serialization_dir)
        self._may_be_unknown = may_be_unknown
        # A tensor where counting would make a GPU wait.
        self._num_tokens: Union[int, torch.Tensor] = 0
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
        for place, outputs in enumerate(batch_outputs):
            num_tokens = outputs.get("num_tokens")
            if num_tokens is None:
                num_tokens = num_text_tokens(batch_inputs[place])
            if num_tokens is None and not self._may_be_unknown:
                raise ConfigurationError(
                    "`elmo_scratch_speed` needs a model that reads texts, or returns `num_tokens`, "
                    f"but {type(trainer.model).__name__} reads {', '.join(batch_inputs[place])} "
                    f"and returns {', '.join(sorted(outputs))}"
                )
            self._num_tokens = self._num_tokens + (0 if num_tokens is None else num_tokens)

    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        num_tokens = dist_reduce_sum(int(self._num_tokens))
        metrics.pop("training_tokens_per_second", None)
        has_time = self._first is not None and self._last > self._first
        if self._first is not None and has_time and num_tokens and is_primary:
            speed = num_tokens / (self._last - self._first)
            numbers = {"training_tokens_per_second": speed}
            add_to_epoch_metrics(self.serialization_dir, metrics, epoch, numbers)
        self._num_tokens = 0
        self._first = None


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
