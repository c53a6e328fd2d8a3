"""The random states of a process, in plain values: `torch.load` reads them without running code."""

import random
from typing import Any, Dict

import numpy
import torch

from elmo_scratch.training.workers import own_rank

RandomState = Dict[str, Any]
"""Python's, NumPy's and PyTorch's states, by name."""


def random_state(device: torch.device) -> RandomState:
    """
    # Parameters

    device : `torch.device`
        Its random state is included if it is a GPU.

    # Returns

    `RandomState`
        The states as they are now.
    """
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
    """
    Lets all random numbers from now on be those that followed when `random_state` was called.

    # Parameters

    state : `RandomState`
        As `random_state` returned it.
    device : `torch.device`
        As there; a state of a GPU is left out where there is none.
    """
    random.setstate(state["python"])
    numpy.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


def separate_workers() -> None:
    """
    Gives each worker of a distributed training random numbers of its own, where all have the same
    state; the first one's stay what they are. Only PyTorch's: data may be shared out by the others,
    and there workers must agree.
    """
    if own_rank() > 0:
        torch.manual_seed(int(torch.randint(2**62, ())) + own_rank())
