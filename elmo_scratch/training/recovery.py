"""Steps and checks of recovering a training that AllenNLP leaves out."""

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
