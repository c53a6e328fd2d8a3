"""The processors at hand."""

import os


def num_processors() -> int:
    """
    # Returns

    `int`
        How many the process may run on: no more than there are, but fewer where a scheduler or a
        container has given it only some. A share of their time, as `docker run --cpus` gives it,
        is not seen.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
