"""Memory that a training keeps between its steps: large buffers, and pages of the heap."""

import ctypes
import math
import os
import weakref
from functools import lru_cache
from typing import Dict, Optional, Sequence

import numpy
import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Settings of `mallopt`, as `malloc.h` numbers them."""

NEVER = -1

LARGEST_KEPT = 2**25
"""Bytes of the largest tensor whose memory is kept, the most that any release of the library
allows. Among still larger ones much would lie unused; those that come in each step are recycled."""

CHOSEN_BY_USERS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"
"""Environment variables by which users choose such settings themselves."""


@lru_cache(maxsize=None)
def keep_heap_pages() -> bool:
    """
    Lets this process keep what it frees, up to its peak. GNU's C library gives large tensors back
    to the system at the end of each step, which has to clear their pages when the next step takes
    them again. Other libraries stay as they are, and so does this one where users have chosen.

    # Returns

    `bool`
        Whether memory is kept from now on.
    """
    if any(name in os.environ for name in CHOSEN_BY_USERS):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    # A threshold that is set ends the library's own adjusting of the other.
    return bool(set_option(M_MMAP_THRESHOLD, LARGEST_KEPT) and set_option(M_TRIM_THRESHOLD, NEVER))


SMALLEST = 2**18
"""Bytes from which on it pays."""

MOST_FREE = 2**29
"""How many bytes may wait to be used again."""

LARGE_RESULT = 2**23
"""From so many numbers on what a library makes is worth copying to such memory. Smaller results
come faster from where the last one of their size has just gone."""

ALIGNMENT = 64
"""Where numbers begin, in bytes: as PyTorch's own, at the beginning of a line of the caches."""


class BufferPool:
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


buffer_pool = BufferPool()
"""That of this process."""
