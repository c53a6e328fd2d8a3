"""Communication between the workers of a distributed training; a single process is one worker."""

from typing import List, TypeVar

import torch.distributed as dist
from allennlp.common.util import is_distributed

T = TypeVar("T")


def own_rank() -> int:
    """Returns the number of this worker among the workers of all machines, from 0."""
    return dist.get_rank() if is_distributed() else 0


def gathered(own: T) -> List[T]:
    """
    Gathers one object from each worker, in the workers' order. All workers have to call this, with
    an object that can be pickled.
    """
    if not is_distributed():
        return [own]
    told = [own] * dist.get_world_size()
    dist.all_gather_object(told, own)
    return told
