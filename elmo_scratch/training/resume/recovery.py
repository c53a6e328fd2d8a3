"""Recovery of a training: on the same data, with what AllenNLP's own recovery leaves undone."""

import hashlib
import json
import logging
import math
import re
from pathlib import Path
from typing import Any, Container, Dict, NamedTuple, Optional, Protocol, Sequence, runtime_checkable

from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import ConfidenceChecksCallback, ShouldValidateCallback
from allennlp.training.learning_rate_schedulers import PolynomialDecay, SlantedTriangular

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.training.metrics_callbacks import averaged_weights

logger = logging.getLogger(__name__)

METRICS = re.compile(r"metrics_epoch_(\d+)\.json")
"""Names of the files in which AllenNLP tells what each epoch measured."""

OF_WORKERS = "module."
"""What names of weights begin with in `DistributedDataParallel`."""


def reattach_moving_average(trainer: GradientDescentTrainer) -> None:
    """
    AllenNLP lets a moving average go on with the copies of the weights that were in the checkpoint,
    which nobody trains any more. Here it follows the model's own weights again, on their device. Of
    several workers, which a training may have become or have been, each calls its weights by names
    of its own.
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
    """What a weight is called today: for several workers PyTorch puts the model into another."""
    known = (name, f"{OF_WORKERS}{name}", name.removeprefix(OF_WORKERS))
    return next((one for one in known if one in weights), name)


def write_best_weights(trainer: GradientDescentTrainer, folder: str) -> None:
    """
    AllenNLP writes `best.th` after the checkpoint of the epoch that reached it, and the checkpoint
    doesn't know of it: after a kill in between, or right behind, the best weights would be lost.
    For a trainer that was recovered from that checkpoint, this writes them into its folder.
    """
    best = Path(folder) / "best.th"
    if trainer._primary:
        with averaged_weights(trainer), atomic_write(best) as part:
            trainer._save_model_state(str(part))
    trainer._best_model_filename = str(best)


def find_best_weights(trainer: GradientDescentTrainer, folder: str) -> None:
    """
    AllenNLP keeps the path of `best.th` in the checkpoint, and looks there when the training is
    over. Here it is found in the folder of the training, which may have been moved since, or be
    named from another place.
    """
    if trainer._best_model_filename is not None:
        trainer._best_model_filename = str(Path(folder) / Path(trainer._best_model_filename).name)


def decide_on_validation(trainer: GradientDescentTrainer, epoch: int) -> None:
    """
    AllenNLP's `should_validate_callback` decides at the end of an epoch on the next one, but not
    where epochs are replayed. Here it decides on the one that a recovered training goes on in.
    """
    for callback in trainer._callbacks:
        if isinstance(callback, ShouldValidateCallback):
            callback.on_epoch(trainer, {}, epoch - 1)


def add_last_epoch(metrics: Dict[str, Any], folder: str) -> None:
    """
    A training that is recovered behind its last epoch measures nothing more, and AllenNLP would
    write hardly any metrics in the place of those that were there. What the last epoch measured is
    added, unless its file can't be read: the training is over, and its weights are worth more.
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
    How far a training is, and how long it is meant to be.

    # Parameters

    num_epochs : `int`
        Of the whole training.
    steps_an_epoch : `Optional[int]`
        Steps of the optimizer that its first epoch has; `None` if the loader doesn't know.
    steps : `int`
        Those that are done.
    """

    num_epochs: int
    steps_an_epoch: Optional[int]
    steps: int

    @classmethod
    def of(cls, trainer: GradientDescentTrainer) -> "Progress":
        """Of a training that begins, or has been recovered."""
        try:
            num_batches = len(trainer.data_loader)
        except TypeError:
            steps_an_epoch = None
        else:
            steps_an_epoch = math.ceil(num_batches / trainer._num_gradient_accumulation_steps)
        return cls(trainer._num_epochs, steps_an_epoch, trainer._total_batches_completed)


def stretch_schedule(trainer: GradientDescentTrainer, before: Progress) -> None:
    """
    A schedule of learning rates comes back from the checkpoint with the number of steps that it was
    made for. Where the training shall now have another number of epochs, or its epochs have another
    number of steps, it would end too early, at a rate of 0 from there on, or not at all: here it
    gets as many steps as are done and are still to come.

    # Parameters

    trainer : `GradientDescentTrainer`
        Recovered, before its first step.
    before : `Progress`
        Of the training when the checkpoint was written.
    """
    now, scheduler = Progress.of(trainer), trainer._learning_rate_scheduler
    if isinstance(scheduler, SlantedTriangular):
        # It counts the steps of an epoch by itself.
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
    AllenNLP's checks note every module that runs until the first batch of the first epoch is done,
    which a recovered training only replays: the notes would grow without end.
    """
    for callback in trainer._callbacks:
        if isinstance(callback, ConfidenceChecksCallback) and trainer._primary:
            callback._verification.destroy_hooks()


WAY_OF_READING = "way of reading the text"
"""What may change from epoch to epoch."""


@runtime_checkable
class IdentifiedLoader(Protocol):
    """
    A data loader that knows its text by its content, and all that decides how that is cut into
    batches.
    """

    identity: str
    way_of_reading: str


def data_identity(loader: Any, vocab: Vocabulary) -> Dict[str, str]:
    """
    # Parameters

    loader : `DataLoader`
        Of the training data.
    vocab : `Vocabulary`
        Of the model.

    # Returns

    `Dict[str, str]`
        A digest of the vocabulary, its words in their order, and what the loader calls its text and
        its way of reading it, if it is an `IdentifiedLoader`.
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
    # Parameters

    before, now : `Dict[str, str]`
        What `data_identity` says. A checkpoint that doesn't know it, `{}`, is not in the way.
    is_within_epoch : `bool`, optional (default = `True`)
        Whether the training was stopped within an epoch. Between two of them the way of reading may
        change, and a loader that knows its text may take the place of one that doesn't.

    # Raises

    ConfigurationError
        If they differ.
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
    # Parameters

    of_workers : `Sequence[Dict[str, str]]`
        What `data_identity` says to each worker of a distributed training.

    # Raises

    ConfigurationError
        If they differ: workers average their gradients, whatever words the rows of their weights
        stand for.
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
