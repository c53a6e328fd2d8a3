"""What the workers of a distributed training tell each other; a single process is one of one."""

from typing import List, TypeVar

import torch.distributed as dist
from allennlp.common.util import is_distributed

T = TypeVar("T")


def own_rank() -> int:
    """
    # Returns

    `int`
        The number of this worker among those of all machines.
    """
    return dist.get_rank() if is_distributed() else 0


def gathered(own: T) -> List[T]:
    """
    # Parameters

    own : `T`
        What this worker tells; it must be possible to pickle it. Each worker has to tell something.

    # Returns

    `List[T]`
        What all of them tell, in their order.
    """
    if not is_distributed():
        return [own]
    told = [own] * dist.get_world_size()
    dist.all_gather_object(told, own)
    return told
