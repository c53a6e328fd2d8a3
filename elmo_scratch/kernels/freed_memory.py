"""Memory that a training keeps between its steps."""

import ctypes
import os
from functools import lru_cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Settings of `mallopt`, as `malloc.h` numbers them."""

NEVER = -1

LARGEST_KEPT = 2**25
"""Bytes of the largest tensor whose memory is kept, the most that any release of the library
allows. Among still larger ones much would lie unused; those that come in each step are recycled."""

CHOSEN_BY_USERS = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"
"""Environment variables by which users choose such settings themselves."""


@lru_cache(maxsize=None)
def keep_freed_memory() -> bool:
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
