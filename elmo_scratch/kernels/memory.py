"""
What is kept in memory from step to step: large buffers, pages of the heap, and values derived from
frozen weights, valid until the weights change.
"""

import ctypes
import math
import os
import weakref
from functools import lru_cache
from itertools import count
from typing import Callable, Dict, Generic, Hashable, List, Optional, Sequence, Tuple, TypeVar

import numpy
import torch

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Settings of `mallopt`, numbered as in `malloc.h`."""

NEVER = -1

LARGEST_KEPT = 2**25
"""
Bytes of the largest tensor whose memory malloc keeps: the most that any release of glibc allows.
Keeping larger ones would leave much memory unused; `buffer_pool` recycles those of each step.
"""

CHOSEN_BY_USERS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"
"""Environment variables by which users choose these settings themselves."""


@lru_cache(maxsize=None)
def keep_heap_pages() -> bool:
    """
    Lets this process keep memory that it frees, up to its peak. glibc returns large tensors to the
    system at the end of each step, and the system must clear their pages when the next step takes
    them again. Nothing changes with other C libraries, or where users have chosen settings.

    # Returns

    `bool`
        Whether memory is kept from now on.
    """
    if any(name in os.environ for name in CHOSEN_BY_USERS):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    # Setting one threshold stops glibc from adjusting the other.
    return bool(set_option(M_MMAP_THRESHOLD, LARGEST_KEPT) and set_option(M_TRIM_THRESHOLD, NEVER))


class _HeapFigures(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


LOOK_EVERY = 256
"""Free memory of the heap is looked at once in so many calls."""

MOST_SPARE = 2**28
"""Bytes of the heap that may stay free."""

_calls = count(1)


def release_spare_pages() -> bool:
    """
    Returns the free pages of the heap to the system where `keep_heap_pages` has kept more than
    `MOST_SPARE` bytes. Batches of varying sizes leave gaps that no later tensor fits into, and the
    heap would grow for thousands of steps.

    # Returns

    `bool`
        Whether pages were returned. Most calls don't look.
    """
    if not keep_heap_pages() or next(_calls) % LOOK_EVERY:
        return False
    library = ctypes.CDLL(None)
    figures = getattr(library, "mallinfo2", None)
    if figures is None:
        return False
    figures.restype = _HeapFigures
    if figures().fordblks <= MOST_SPARE:
        return False
    return bool(library.malloc_trim(ctypes.c_size_t(0)))


SMALLEST = 2**18
"""Bytes from which a buffer is worth recycling."""

MOST_FREE = 2**29
"""The most bytes that may wait to be used again."""

LARGE_RESULT = 2**23
"""
From so many numbers, a library's result is worth copying to recycled memory. Smaller results are
faster in memory that malloc has just freed.
"""

ALIGNMENT = 64
"""Alignment of buffers in bytes: one cache line, as in PyTorch."""


class BufferPool:
    """
    Recycles memory. The system clears memory that is newly taken from it page by page, which was a
    sixth of the time of training the LSTMs.
    """

    def __init__(self) -> None:
        self._free: Dict[int, numpy.ndarray] = {}  # the longest free first

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """
        An uninitialised CPU tensor. Its memory is free for reuse when nothing refers to it any
        more.
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
        # Detached, because autograd refuses writes to a result that is a view.
        return torch.frombuffer(lease, dtype=dtype).view(*shape).detach()

    def _take(self, size: int) -> Optional[numpy.ndarray]:
        """A free block that is at most a quarter too large, if there is one."""
        # The block used last is most likely in a cache. Another thread may take a block, or give
        # one back, at any time.
        for key in reversed(list(self._free)):
            block = self._free.get(key)
            if block is not None and 0 <= len(block) - ALIGNMENT - size <= size // 4:
                taken = self._free.pop(key, None)
                if taken is not None:
                    return taken
        return None

    def _give_back(self, block: numpy.ndarray) -> None:
        """Keeps a block, and drops the blocks that have been free longest if there are too many."""
        self._free[id(block)] = block
        while sum(map(len, list(self._free.values()))) > MOST_FREE:
            self._free.pop(next(iter(list(self._free)), 0), None)


buffer_pool = BufferPool()
"""The pool of this process."""


SAMPLE_SIZE = 64
"""How many numbers of a tensor are compared to find out whether it has changed."""

NO_VERSION = -1
"""Stands for the version of a tensor that has none."""


class Fingerprint:
    """
    Tells whether tensors have changed. They match if storage, shape, strides, type and device are
    the same, PyTorch's version counters saw no write, and about `SAMPLE_SIZE` evenly spread numbers
    are equal; the numbers are compared because version counters miss writes through `.data`.
    Tensors made in inference mode, which have no versions, never match.

    # Parameters

    tensors : `Sequence[torch.Tensor]`
        The tensors as they are now.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._states = list(map(_state_of, tensors))
        self._samples = _samples_of(tensors)

    def matches(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether `tensors` are still the ones that the fingerprint was taken of."""
        states = list(map(_state_of, tensors))
        return (
            states == self._states
            and all(version != NO_VERSION for version, *_ in states)
            and all(map(torch.equal, _samples_of(tensors), self._samples))
        )


_State = Tuple[int, int, torch.Size, Tuple[int, ...], torch.dtype, torch.device]


def _state_of(tensor: torch.Tensor) -> _State:
    """How often a tensor has been written, where it lies and how."""
    version = NO_VERSION if tensor.is_inference() else tensor._version
    place = tensor.data_ptr()
    return version, place, tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _samples_of(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """
    Some numbers of each tensor, those of one device and type together: on a GPU each comparison
    waits for the device.
    """
    samples: Dict[Tuple[torch.device, torch.dtype], List[torch.Tensor]] = {}
    for tensor in tensors:
        # An odd stride: row lengths are often powers of two, and an even stride would hit the same
        # few columns in every row.
        size = tensor.numel()
        stride = size // SAMPLE_SIZE | 1
        if tensor.is_contiguous():
            # One operation in the place of two: a single sentence waits for each.
            sample = tensor.as_strided((-(-size // stride),), (stride,))
        else:
            sample = tensor.flatten()[::stride]
        samples.setdefault((tensor.device, tensor.dtype), []).append(sample)
    return [torch.cat(parts).detach() for parts in samples.values()]


Derived = TypeVar("Derived")


def are_frozen(weights: Sequence[torch.Tensor]) -> bool:
    """
    Whether values derived from a module's weights may be kept: it has weights, and none is trained.
    A module that a wrapper has split among devices has no weights of its own.
    """
    return bool(weights) and not any(weight.requires_grad for weight in weights)


def _finish(weights: Sequence[torch.Tensor]) -> None:
    """Waits until a GPU has made what is derived from weights: other streams may read it next."""
    if weights and weights[0].is_cuda and not torch.cuda.is_current_stream_capturing():
        torch.cuda.current_stream(weights[0].device).synchronize()


class FrozenWeightCache(Generic[Derived]):
    """
    Keeps a value derived from weights as long as the weights don't change. From weights that are
    trained the value is derived anew at every call. Copies and pickles start empty.
    """

    def __init__(self) -> None:
        # One attribute, so that other threads never see half of a change.
        self._kept: Optional[Tuple[Hashable, Fingerprint, Derived]] = None

    def of(
        self,
        weights: Sequence[torch.Tensor],
        settings: Hashable,
        derive: Callable[[], Derived],
    ) -> Derived:
        """
        The value that `derive` gives for these weights, from the cache if possible.

        # Parameters

        weights : `Sequence[torch.Tensor]`
            The tensors that `derive` depends on.
        settings : `Hashable`
            All else that it depends on, such as the precision of the value.
        derive : `Callable[[], Derived]`
            Computes the value.
        """
        if any(weight.requires_grad for weight in weights):
            self.forget()
            return derive()
        before = self._kept
        if before is not None:
            kept_settings, fingerprint, kept = before
            if kept_settings == settings and fingerprint.matches(weights):
                return kept
        fingerprint, derived = Fingerprint(weights), derive()
        _finish(weights)
        self._kept = (settings, fingerprint, derived)
        return derived

    def forget(self) -> None:
        """Drops the value."""
        self._kept = None

    def __deepcopy__(self, _: object) -> "FrozenWeightCache[Derived]":
        return type(self)()

    def __reduce__(self) -> Tuple[type, Tuple[()]]:
        return type(self), ()
