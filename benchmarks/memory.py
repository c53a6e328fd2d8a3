"""The memory that a benchmark's process takes."""

import resource
from pathlib import Path


def peak_memory() -> float:
    """The peak memory of this process, in MiB."""
    # `getrusage` would count what the process that started this one had used.
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
