"""A callback with which a recovered training ends in the same bits as one that never stopped."""

import logging
import random
from typing import Any, Callable, Dict, Iterator, List, Optional, Protocol, Tuple, runtime_checkable

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, Instance, TensorDict, Vocabulary
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import TrainerCallback

from elmo_scratch.kernels import BFLOAT16, MixedPrecision
from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstm import StateMemory
from elmo_scratch.training.environment import gathered, own_rank
from elmo_scratch.training.recovery import (
    Progress,
    add_last_epoch,
    check_same_data,
    check_shared_data,
    data_identity,
    decide_on_validation,
    end_confidence_checks,
    find_best_weights,
    reattach_moving_average,
    stretch_schedule,
    write_best_weights,
)

logger = logging.getLogger(__name__)


RandomState = Dict[str, Any]
"""The states of the random generators of Python, NumPy and PyTorch, by name."""


def random_state(device: torch.device) -> RandomState:
    """Returns the current states of the random generators, that of `device` included if a GPU."""
    name, keys, *rest = numpy.random.get_state()
    state = {
        "python": random.getstate(),
        "numpy": (name, [int(key) for key in keys], *rest),
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: RandomState, device: torch.device) -> None:
    """Restores a result of `random_state`. A GPU's state is ignored if `device` is no GPU."""
    random.setstate(state["python"])
    numpy.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


def separate_workers() -> None:
    """
    Gives each worker of a distributed training its own state of PyTorch's generator; the first
    worker's state stays. The states of Python and NumPy stay equal in all workers: data may be
    divided among workers by random numbers, on which they must agree.
    """
    if own_rank() > 0:
        torch.manual_seed(int(torch.randint(2**62, ())) + own_rank())


class WatchedLoader(DataLoader):
    """
    Yields the batches of another loader, and calls functions with the number of epochs completed
    and the number of batches drawn in this epoch: `before_drawing` before the first batch, before
    each further one and before the end, `at_end` when an epoch has no further batch.
    """

    def __init__(
        self,
        loader: DataLoader,
        before_drawing: Callable[[int, int], None],
        at_end: Callable[[int, int], None],
    ) -> None:
        self.loader = loader
        self.num_drawn = 0
        self._before_drawing = before_drawing
        self._at_end = at_end
        self._epochs_begun = 0

    def __iter__(self) -> Iterator[TensorDict]:
        epoch = self._epochs_begun
        self._epochs_begun += 1
        self.num_drawn = 0
        self._before_drawing(epoch, 0)
        for batch in self.loader:
            self.num_drawn += 1
            yield batch
            self._before_drawing(epoch, self.num_drawn)
        self._at_end(epoch, self.num_drawn)

    def __len__(self) -> int:
        return len(self.loader)

    def iter_instances(self) -> Iterator[Instance]:
        return self.loader.iter_instances()

    def index_with(self, vocab: Vocabulary) -> None:
        self.loader.index_with(vocab)

    def set_target_device(self, device: torch.device) -> None:
        self.loader.set_target_device(device)


OWN_KEY = "epoch_starts"
"""The key by which the state of this callback is told from the states of others."""


@runtime_checkable
class SkippingLoader(Protocol):
    """A data loader that needs no replay, because it can be told where to start."""

    def skip(self, epochs: int, batches: int) -> None:
        """
        Called before the first epoch of a recovered training. Nobody looks at the first `epochs`
        epochs and the first `batches` batches of the next one, so the loader may yield placeholders
        in their place.
        """


@runtime_checkable
class OrderedLoader(Protocol):
    """A data loader whose order depends on the number of the epoch that comes next."""

    epoch: int


@TrainerCallback.register("elmo_scratch_exact_resume")
class ExactResume(TrainerCallback):
    """
    Adds to each checkpoint what AllenNLP leaves out: random states, the LSTM states that are
    carried from batch to batch, the scale of losses in mixed precision, and whether products in
    bfloat16 were found to be slow. With it a training that was killed and recovered (`allennlp
    train --recover`) ends, on one CPU, in the same bits as a training that ran through.

    AllenNLP returns to its place in the data by drawing all batches once more without training on
    them. So this callback replays each epoch from the random state that the epoch began with, and
    restores the saved state where training goes on. Two things are not exact: a loader that draws
    random numbers between batches from a generator that the model draws from too, and the training
    metrics of the interrupted epoch. These metrics cover its remaining batches only, and AllenNLP's
    `training_loss` divides their sum by all batches of the epoch.

    A training can't be recovered if its vocabulary has changed; if its text has changed and the
    loader is an `elmo_scratch_stream`; if its epoch now ends before the place to go on at; or if,
    within an epoch, the text is cut into other streams. If the number of epochs or of their steps
    has changed, a learning rate schedule `linear_with_warmup` or `polynomial_decay` is stretched or
    shortened; a `slanted_triangular` follows the number of epochs only.

    In distributed training each worker draws its own random numbers, for instance for dropout,
    while AllenNLP gives all workers the same. The checkpointer "elmo_scratch_whole" saves each
    worker's state. With another checkpointer, or for a worker that was added, a recovered worker's
    random numbers are its own too, but begin anew.

    Registered as a `TrainerCallback` with name "elmo_scratch_exact_resume".

    # Parameters

    serialization_dir : `str`
        Given by the trainer.

    # Raises

    ConfigurationError
        If a recovered training has other data, as said above; if its callbacks are in another
        order, by which AllenNLP restores their states; if the workers of a distributed training
        have different data.
    """

    def __init__(self, serialization_dir: str) -> None:
        super().__init__(serialization_dir)
        self._saved: Dict[str, Any] = {}
        self._goes_on_at: Optional[Tuple[int, int]] = None
        self._epoch_starts: List[RandomState] = []
        self._data: Dict[str, str] = {}
        self._length: Tuple[int, Optional[int]] = (0, None)

    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        loader = trainer.data_loader
        self._loader = WatchedLoader(loader, self._before_drawing, self._at_end)
        trainer.data_loader = self._loader
        self._data = data_identity(loader, trainer.model.vocab)
        check_shared_data(gathered(self._data))
        self._length = Progress.of(trainer)[:2]
        epochs = trainer._start_after_epochs_completed
        groups = trainer._start_after_batches_in_epoch_completed
        if not epochs and not groups:
            separate_workers()
            return
        reattach_moving_average(trainer)
        find_best_weights(trainer, self.serialization_dir)
        batches = groups * trainer._num_gradient_accumulation_steps
        if self._saved:
            batches = self._saved["num_drawn"]
            self._check_accumulation(is_within_epoch=batches > 0)
            check_same_data(self._saved.get("data", {}), self._data, is_within_epoch=batches > 0)
            if "progress" in self._saved:
                stretch_schedule(trainer, Progress(*self._saved["progress"]))
            self._epoch_starts = self._saved["epoch_starts"]
            self._restore_carried()
            trained = self._saved.get("trained")
            for name, parameter in trainer.model.named_parameters():
                if trained is not None:
                    parameter.requires_grad_(name in trained)
            if self._saved.get("bfloat16_is_slow") is not None:
                BFLOAT16.known = self._saved["bfloat16_is_slow"]
            validation = trainer._validation_data_loader
            if isinstance(validation, OrderedLoader):
                validation.epoch = self._saved.get("validation_epoch", 0)
            if self._saved["is_best"]:
                write_best_weights(trainer, self.serialization_dir)
        else:
            self._check_order_of_callbacks()
            logger.warning(
                "The checkpoint was written without `elmo_scratch_exact_resume`: the training goes "
                "on, but with other random numbers than it would have had."
            )
        self._goes_on_at = (epochs, batches)
        if isinstance(loader, SkippingLoader):
            loader.skip(epochs, batches)
        if not batches and trainer._metric_tracker.should_stop_early():
            # The trainer would stop early only after one more epoch.
            trainer._num_epochs = epochs

    def on_end(
        self,
        trainer: GradientDescentTrainer,
        metrics: Optional[Dict[str, Any]] = None,
        epoch: Optional[int] = None,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        trainer.data_loader = self._loader.loader
        if metrics is not None and is_primary:
            add_last_epoch(metrics, self.serialization_dir)

    def state_dict(self) -> Dict[str, Any]:
        trainer = self._running()
        in_epoch = trainer._batches_in_epoch_completed > 0
        carried = [memory.carried() for memory in self._memories()]
        validation, model = trainer._validation_data_loader, trainer.model
        return {
            "data": self._data,
            "progress": (*self._length, trainer._total_batches_completed),
            "validation_epoch": validation.epoch if isinstance(validation, OrderedLoader) else 0,
            "rank": own_rank(),
            "random": random_state(trainer.cuda_device),
            "epoch_starts": list(self._epoch_starts),
            "num_drawn": self._loader.num_drawn if in_epoch else 0,
            "accumulated": trainer._num_gradient_accumulation_steps,
            "carried": [None if state is None else tuple(state) for state in carried],
            # The same decision as the trainer's, which has not written the best weights yet.
            "is_best": not in_epoch
            and trainer._should_validate_this_epoch
            and trainer._metric_tracker.is_best_so_far(),
            # A scheduler may have frozen some weights for now, as `slanted_triangular` does.
            "trained": [name for name, weight in model.named_parameters() if weight.requires_grad],
            "bfloat16_is_slow": BFLOAT16.known if MixedPrecision.is_asked_for(model) else None,
            "scaler": None if trainer._scaler is None else trainer._scaler.state_dict(),
        }

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._saved = state_dict if OWN_KEY in state_dict else {}

    def _before_drawing(self, epoch: int, num_drawn: int) -> None:
        """Sets random states at the start of a replayed epoch, and all state at the saved place."""
        trainer = self._running()
        if num_drawn == 0 and self._goes_on_at is not None and epoch == self._goes_on_at[0]:
            self._count_steps_before(trainer)
        if (epoch, num_drawn) == self._goes_on_at:
            if self._saved:
                self._restore(trainer, is_within_epoch=num_drawn > 0)
            else:
                separate_workers()
            end_confidence_checks(trainer)
            decide_on_validation(trainer, epoch)
            self._saved = {}
            self._goes_on_at = None
        if num_drawn == 0:
            if epoch < len(self._epoch_starts):
                set_random_state(self._epoch_starts[epoch], trainer.cuda_device)
            else:
                self._epoch_starts.append(random_state(trainer.cuda_device))

    def _restore(self, trainer: GradientDescentTrainer, is_within_epoch: bool) -> None:
        """Restores the saved state that the replay would have changed."""
        set_random_state(self._saved["random"], trainer.cuda_device)
        if self._saved.get("rank", own_rank()) != own_rank():
            separate_workers()
        # At the start of an epoch the model may have been told to forget its LSTM states.
        if is_within_epoch:
            self._restore_carried()
        if trainer._scaler is not None and self._saved["scaler"] is not None:
            trainer._scaler.load_state_dict(self._saved["scaler"])

    def _count_steps_before(self, trainer: GradientDescentTrainer) -> None:
        """Corrects the trainer's number of steps: with other streams, replay counts other ones."""
        if "progress" in self._saved:
            in_epoch = trainer._start_after_batches_in_epoch_completed
            trainer._total_batches_completed = Progress(*self._saved["progress"]).steps - in_epoch

    def _at_end(self, epoch: int, num_drawn: int) -> None:
        """Raises if the epoch ends before the saved place, before it is measured or saved."""
        if self._goes_on_at is not None and epoch == self._goes_on_at[0]:
            raise ConfigurationError(
                f"the training can't be recovered: {self._goes_on_at[1]} batches of its epoch were "
                f"read, which now has {num_drawn}. Bring the training data and the size of batches "
                "back as they were."
            )

    def _check_accumulation(self, is_within_epoch: bool) -> None:
        """Raises if another accumulation of gradients would end the replay at another place."""
        now = self._running()._num_gradient_accumulation_steps
        before = self._saved.get("accumulated", now)
        if is_within_epoch and now != before:
            raise ConfigurationError(
                "the training can't be recovered within an epoch: its "
                f"`num_gradient_accumulation_steps` was {before} and is {now} now. Bring it back "
                "as it was until the epoch is over."
            )

    def _check_order_of_callbacks(self) -> None:
        """Raises if another callback was given the state that is missing here."""
        trainer = self._running()
        assert trainer._checkpointer is not None
        latest = trainer._checkpointer.find_latest_checkpoint()
        assert latest is not None
        states = torch.load(latest[1], map_location="cpu", weights_only=True)["callbacks"]
        before = [number for number, state in enumerate(states) if OWN_KEY in state]
        if before:
            now = trainer._callbacks.index(self)
            raise ConfigurationError(
                "the training can't be recovered: `elmo_scratch_exact_resume` was number "
                f"{before[0] + 1} of its callbacks and is number {now + 1} now, and AllenNLP gives "
                "them their states back by that order. Leave those that were there in their "
                "places, and add others behind them."
            )

    def _restore_carried(self) -> None:
        for memory, carried in zip(self._memories(), self._saved["carried"]):
            memory.carry_on_from(None if carried is None else LstmState(*carried))

    def _memories(self) -> List[StateMemory]:
        """Lists the memories of the model that carry LSTM states, in a fixed order."""
        return [
            module
            for module in self._running().model.modules()
            if isinstance(module, StateMemory) and module.state == "carry"
        ]

    def _running(self) -> GradientDescentTrainer:
        assert self.trainer is not None
        return self.trainer
