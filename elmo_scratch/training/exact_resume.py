"""
A callback with which a recovered training ends in the same bits as one that never stopped, and the
checks of recovering that AllenNLP leaves out.
"""

import hashlib
import json
import logging
import math
import random
import re
from pathlib import Path
from typing import (
    Any,
    Callable,
    Container,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    runtime_checkable,
)

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, Instance, TensorDict, Vocabulary
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import (
    ConfidenceChecksCallback,
    ShouldValidateCallback,
    TrainerCallback,
)
from allennlp.training.learning_rate_schedulers import PolynomialDecay, SlantedTriangular

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.kernels import BFLOAT16, MixedPrecision
from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstm import StateMemory
from elmo_scratch.training.callbacks import averaged_weights
from elmo_scratch.training.environment import gathered, own_rank

logger = logging.getLogger(__name__)

METRICS = re.compile(r"metrics_epoch_(\d+)\.json")
"""Matches the names of AllenNLP's files with the metrics of an epoch."""

OF_WORKERS = "module."
"""The prefix of weight names in `DistributedDataParallel`."""


def reattach_moving_average(trainer: GradientDescentTrainer) -> None:
    """
    Lets a moving average follow the model's own weights again, on their device: AllenNLP leaves it
    with the copies from the checkpoint, which nobody trains. The names in the checkpoint may differ
    from the model's, since a training with several workers gives weights another prefix.
    """
    average = trainer._moving_average
    if average is None:
        return
    weights = dict(trainer._pytorch_model.named_parameters())
    names = {name: _name_among(weights, name) for name, _ in average._parameters}
    average._parameters = [(names[name], weights[names[name]]) for name, _ in average._parameters]
    for kept in (average._shadows, average._backups):
        moved = {names[name]: copy.to(weights[names[name]].device) for name, copy in kept.items()}
        kept.clear()
        kept.update(moved)


def _name_among(weights: Container[str], name: str) -> str:
    """Returns a weight's name today, with or without the prefix `module.` for several workers."""
    known = (name, f"{OF_WORKERS}{name}", name.removeprefix(OF_WORKERS))
    return next((one for one in known if one in weights), name)


def write_best_weights(trainer: GradientDescentTrainer, folder: str) -> None:
    """
    Writes `best.th` for a trainer that was recovered from the checkpoint of its best epoch.
    AllenNLP writes `best.th` after that checkpoint, which doesn't know of it, so that a kill in
    between or right after would lose the best weights.
    """
    best = Path(folder) / "best.th"
    if trainer._primary:
        with averaged_weights(trainer), atomic_write(best) as part:
            trainer._save_model_state(str(part))
    trainer._best_model_filename = str(best)


def find_best_weights(trainer: GradientDescentTrainer, folder: str) -> None:
    """
    Lets the trainer find `best.th` in the folder of the training. The path in AllenNLP's checkpoint
    is wrong if the folder has moved, or was named from another working folder.
    """
    if trainer._best_model_filename is not None:
        trainer._best_model_filename = str(Path(folder) / Path(trainer._best_model_filename).name)


def decide_on_validation(trainer: GradientDescentTrainer, epoch: int) -> None:
    """
    Lets AllenNLP's `should_validate_callback` decide on the epoch that a recovered training goes on
    in. It decides in `on_epoch` of the epoch before, which AllenNLP doesn't call for replayed ones.
    """
    for callback in trainer._callbacks:
        if isinstance(callback, ShouldValidateCallback):
            callback.on_epoch(trainer, {}, epoch - 1)


def add_last_epoch(metrics: Dict[str, Any], folder: str) -> None:
    """
    Adds the last epoch's metrics to those of a training that is recovered after its last epoch: it
    measures nothing more, and AllenNLP would replace the earlier metrics by hardly any. If the file
    can't be read there is only a warning: the training is over, and its weights are worth more.
    """
    files = Path(folder).glob("metrics_epoch_*.json")
    found = filter(None, (METRICS.fullmatch(path.name) for path in files))
    last = max(found, key=lambda name: int(name[1]), default=None)
    if last is None:
        return
    path = Path(folder) / last[0]
    try:
        measured = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, TypeError, ValueError) as error:
        logger.warning("%s: can't be read (%s). Its metrics are left out.", path, error)
        return
    for name, value in measured.items():
        metrics.setdefault(name, value)


class Progress(NamedTuple):
    """
    The length of a training, and the optimizer's `steps` that are done. `steps_an_epoch` are the
    optimizer's steps in the first epoch; `None` if the loader doesn't know its length.
    """

    num_epochs: int
    steps_an_epoch: Optional[int]
    steps: int

    @classmethod
    def of(cls, trainer: GradientDescentTrainer) -> "Progress":
        """Returns the progress of a training that begins, or has been recovered."""
        try:
            num_batches = len(trainer.data_loader)
        except TypeError:
            steps_an_epoch = None
        else:
            steps_an_epoch = math.ceil(num_batches / trainer._num_gradient_accumulation_steps)
        return cls(trainer._num_epochs, steps_an_epoch, trainer._total_batches_completed)


def stretch_schedule(trainer: GradientDescentTrainer, before: Progress) -> None:
    """
    Gives the learning rate schedule of a recovered training, before its first step, as many steps
    as are done and still to come. `before` is the progress when the checkpoint was written.

    A schedule comes back from the checkpoint with its old number of steps. If the number of epochs
    or of their steps has changed, it would end too early, with a rate of 0 from there on, or never.
    """
    now, scheduler = Progress.of(trainer), trainer._learning_rate_scheduler
    if isinstance(scheduler, SlantedTriangular):
        # `SlantedTriangular` counts the steps of an epoch by itself.
        scheduler.num_epochs = now.num_epochs
    if not isinstance(scheduler, PolynomialDecay) or now[:2] == before[:2]:
        return
    total = scheduler.total_steps
    if now.steps_an_epoch is None:
        scheduler.total_steps = total * now.num_epochs // before.num_epochs
    else:
        at_epoch_start = before.steps - trainer._start_after_batches_in_epoch_completed
        num_epochs_left = now.num_epochs - trainer._start_after_epochs_completed
        scheduler.total_steps = at_epoch_start + num_epochs_left * now.steps_an_epoch
    logger.info(
        "The schedule of learning rates now ends after %d steps, not %d: the training has %d "
        "epochs of %s steps, not %d of %s.",
        scheduler.total_steps,
        total,
        now.num_epochs,
        now.steps_an_epoch,
        before.num_epochs,
        before.steps_an_epoch,
    )


def end_confidence_checks(trainer: GradientDescentTrainer) -> None:
    """
    Ends AllenNLP's confidence checks. They record every module that runs until the first batch of
    the first epoch is trained; a recovered training only replays it, and the record would grow
    without end.
    """
    for callback in trainer._callbacks:
        if isinstance(callback, ConfidenceChecksCallback) and trainer._primary:
            callback._verification.destroy_hooks()


WAY_OF_READING = "way of reading the text"
"""The part of a data identity that may change between two epochs."""


@runtime_checkable
class IdentifiedLoader(Protocol):
    """
    A data loader that identifies its text by its content (`identity`), and all settings that decide
    how the text is cut into batches (`way_of_reading`).
    """

    identity: str
    way_of_reading: str


def data_identity(loader: Any, vocab: Vocabulary) -> Dict[str, str]:
    """
    Returns a digest of the vocabulary, words and order, and the identities of the training text and
    of the way of reading it, if the loader is an `IdentifiedLoader`.
    """
    digest = hashlib.sha256()
    for namespace in sorted(vocab.get_namespaces()):
        words = sorted(vocab.get_index_to_token_vocabulary(namespace).items())
        digest.update(json.dumps([namespace, words]).encode("utf-8"))
    identity = {"vocabulary": digest.hexdigest()}
    if isinstance(loader, IdentifiedLoader):
        identity["training text"] = loader.identity
        identity[WAY_OF_READING] = loader.way_of_reading
    return identity


def check_same_data(
    before: Dict[str, str], now: Dict[str, str], is_within_epoch: bool = True
) -> None:
    """
    Raises `ConfigurationError` if two results of `data_identity` differ. A checkpoint without one,
    `{}`, is accepted. Between two epochs the way of reading may change, and an `IdentifiedLoader`
    may replace another loader or be replaced.
    """
    if not before:
        return
    may_differ = set() if is_within_epoch else {WAY_OF_READING} | (before.keys() ^ now.keys())
    for what in {**before, **now}:
        one, other = (identity.get(what, "not known") for identity in (before, now))
        if one != other and what not in may_differ:
            raise ConfigurationError(
                f"the training can't be recovered: its {what} is not the one that it began with "
                f"({one}, but now {other}), so that its place in the text, or the "
                "rows of its weights, would mean something else. Bring files and settings back as "
                "they were, or train in another folder, from the "
                "archive of this one (training_config/bilm/fine_tune.jsonnet)."
            )


def check_shared_data(of_workers: Sequence[Dict[str, str]]) -> None:
    """
    Raises `ConfigurationError` if the results of `data_identity` differ between the workers of a
    distributed training: they average their gradients, whatever words their rows stand for.
    """
    first = of_workers[0]
    for rank, own in enumerate(of_workers):
        for what in {**first, **own}:
            one, other = (identity.get(what, "not known") for identity in (first, own))
            if one != other:
                raise ConfigurationError(
                    f"the workers can't train together: the {what} of worker {rank} is not that of "
                    f"worker 0 ({other}, but there {one}). Give each machine the same files, and "
                    "the same settings."
                )


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
