"""The weights that a training validates and keeps."""

from contextlib import contextmanager
from typing import Iterator

from allennlp.training import GradientDescentTrainer


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
