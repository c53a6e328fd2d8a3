"""What the machine has, or as much of it as a container or a batch job may use."""

import os
from pathlib import Path
from typing import Iterator

STATISTICS = Path("/proc/meminfo")
"""Where Linux counts memory."""

CONTROL_GROUP = Path("/proc/self/cgroup")
"""Where Linux says to which groups a process belongs."""

LIMITS = Path("/sys/fs/cgroup")
"""Where it says what these may use."""


def machine_memory() -> float:
    """
    The bytes of memory that the machine has, or that the process may use if that is less; infinity
    where the system doesn't say.
    """
    try:
        installed = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        installed = float("inf")
    return min([installed, *_limits()])


def free_memory() -> float:
    """
    The bytes of the machine's memory that nobody needs now; infinity where the system doesn't say.
    """
    try:
        lines = STATISTICS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("inf")
    counts = dict(line.split(":", 1) for line in lines if ":" in line)
    number, *_ = counts.get("MemAvailable", "inf").split()
    return 1024 * float(number)


def _limits() -> Iterator[float]:
    """Those of the control groups that the process belongs to, in both versions of them."""
    try:
        groups = CONTROL_GROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for group in groups:
        _, _, rest = group.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            root, name = LIMITS, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = LIMITS / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = root / path.lstrip("/")
        # A container may see its own group as the root, or not see its path at all.
        for folder in (own, *own.parents):
            if folder.is_relative_to(root):
                try:
                    yield float((folder / name).read_text(encoding="utf-8"))
                except (OSError, ValueError):  # the word "max" stands for none
                    continue
