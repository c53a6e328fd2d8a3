"""What the machine has."""

import os


def machine_memory() -> float:
    """The bytes of memory that the machine has; infinity where the system doesn't say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return float("inf")
