"""Modules in evaluation mode for a while."""

from contextlib import contextmanager
from typing import Iterator

import torch


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """
    In the block nothing is dropped. Behind it each part has the mode again that it had.

    # Parameters

    module : `torch.nn.Module`
        Any module.
    """
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
