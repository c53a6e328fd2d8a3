"""What AllenNLP's own recovery of a training leaves undone."""

import logging
from pathlib import Path

from allennlp.training import GradientDescentTrainer
from allennlp.training.callbacks import ConfidenceChecksCallback
from allennlp.training.learning_rate_schedulers import PolynomialDecay

from elmo_scratch.training.averaged_weights import averaged_weights
from elmo_scratch.whole_file import whole_file

logger = logging.getLogger(__name__)


def reattach_moving_average(trainer: GradientDescentTrainer) -> None:
    """
    AllenNLP lets a moving average go on with the copies of the weights that were in the checkpoint,
    which nobody trains any more. Here it follows the model's own weights again, on their device.
    """
    average = trainer._moving_average
    if average is None:
        return
    weights = dict(trainer._pytorch_model.named_parameters())
    average._parameters = [(name, weights[name]) for name, _ in average._parameters]
    for kept in (average._shadows, average._backups):
        for name in kept:
            kept[name] = kept[name].to(weights[name].device)


def write_best_weights(trainer: GradientDescentTrainer, folder: str) -> None:
    """
    AllenNLP writes `best.th` after the checkpoint of the epoch that reached it, and the checkpoint
    doesn't know of it: after a kill in between, or right behind, the best weights would be lost.
    For a trainer that was recovered from that checkpoint, this writes them into its folder.
    """
    best = Path(folder) / "best.th"
    if trainer._primary:
        with averaged_weights(trainer), whole_file(best) as part:
            trainer._save_model_state(str(part))
    trainer._best_model_filename = str(best)


def stretch_schedule(trainer: GradientDescentTrainer, num_epochs: int) -> None:
    """
    A schedule of learning rates comes back from the checkpoint with the number of steps that it was
    made for. Where the training shall now have another number of epochs, it would end too early, at
    a rate of 0 from there on, or not at all: here it gets as many steps as go with them.

    # Parameters

    trainer : `GradientDescentTrainer`
        Recovered.
    num_epochs : `int`
        How many epochs the training was to have when the checkpoint was written.
    """
    scheduler = trainer._learning_rate_scheduler
    if isinstance(scheduler, PolynomialDecay) and num_epochs != trainer._num_epochs:
        total = scheduler.total_steps
        scheduler.total_steps = total * trainer._num_epochs // num_epochs
        logger.info(
            "The schedule of learning rates now ends after %d steps, not %d: the training has %d "
            "epochs, not %d.",
            scheduler.total_steps,
            total,
            trainer._num_epochs,
            num_epochs,
        )


def end_confidence_checks(trainer: GradientDescentTrainer) -> None:
    """
    AllenNLP's checks note every module that runs until the first batch of the first epoch is done,
    which a recovered training only replays: the notes would grow without end.
    """
    for callback in trainer._callbacks:
        if isinstance(callback, ConfidenceChecksCallback) and trainer._primary:
            callback._verification.destroy_hooks()
