"""Memory for large results that come and go in each batch."""

import math
import weakref
from typing import Dict, Optional, Sequence

import numpy
import torch

SMALLEST = 2**18
"""Bytes from which on it pays."""

MOST_FREE = 2**29
"""How many bytes may wait to be used again."""

LARGE_RESULT = 2**23
"""From so many numbers on what a library makes is worth copying to such memory. Smaller results
come faster from where the last one of their size has just gone."""

ALIGNMENT = 64
"""Where numbers begin, in bytes: as PyTorch's own, at the beginning of a line of the caches."""


class RecycledMemory:
    """
    Gives memory that was in use before. What is taken anew from the system each time has to be
    cleared by it page by page: of the LSTMs' training that was a sixth.
    """

    def __init__(self) -> None:
        self._free: Dict[int, numpy.ndarray] = {}  # the longest free first

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """
        # Parameters

        shape : `Sequence[int]`
            The shape.
        dtype : `torch.dtype`
            The type.

        # Returns

        `torch.Tensor`
            On the CPU, of any numbers. When nothing refers to it any more its memory is free.
        """
        size = math.prod(shape) * dtype.itemsize
        if size < SMALLEST:
            return torch.empty(*shape, dtype=dtype, device="cpu")
        block = self._take(size)
        if block is None:
            block = numpy.empty(size + ALIGNMENT, numpy.uint8)
        start = -block.ctypes.data % ALIGNMENT
        # The tensor holds on to this view of the block until it is gone.
        lease = block[start : start + size]
        weakref.finalize(lease, self._give_back, block).atexit = False
        # No view for autograd, which would refuse to let it be written to where it is a result.
        return torch.frombuffer(lease, dtype=dtype).view(*shape).detach()

    def _take(self, size: int) -> Optional[numpy.ndarray]:
        """A free block that is not much larger than it has to be, if there is one."""
        # What was used last is nearest to the processor. A block may be taken by another thread, or
        # given back, at any time.
        for key in reversed(list(self._free)):
            block = self._free.get(key)
            if block is not None and 0 <= len(block) - ALIGNMENT - size <= size // 4:
                taken = self._free.pop(key, None)
                if taken is not None:
                    return taken
        return None

    def _give_back(self, block: numpy.ndarray) -> None:
        """Keeps a block, and lets those go that have been free the longest if they are too many."""
        self._free[id(block)] = block
        while sum(map(len, list(self._free.values()))) > MOST_FREE:
            self._free.pop(next(iter(list(self._free)), 0), None)


RECYCLED = RecycledMemory()
"""That of this process."""
