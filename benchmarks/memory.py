"""The memory that a benchmark's process takes."""

import resource
import sys
from pathlib import Path

import torch

STATUS = Path("/proc/self/status")


def peak_memory_on(device: torch.device) -> float:
    """The peak memory of this process on a GPU, or of this process itself, in MiB."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return peak_memory()


def peak_memory() -> float:
    """The peak memory of this process, in MiB."""
    # `getrusage` would count what the process that started this one had used.
    if STATUS.exists():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
