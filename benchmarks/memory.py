"""The memory that a benchmark's process takes."""

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_memory() -> float:
    """The peak memory of this process, in MiB."""
    # `getrusage` would count what the process that started this one had used.
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
