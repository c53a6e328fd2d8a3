"""
Tells which processors and how much memory this process may use, limits of containers included.
"""

import os
import platform
from pathlib import Path
from typing import Iterator, NamedTuple, Tuple

STATISTICS = Path("/proc/meminfo")
"""The file in which Linux counts memory."""

CONTROL_GROUP = Path("/proc/self/cgroup")
"""The file in which Linux lists the control groups of a process."""

PROCESSORS = Path("/proc/cpuinfo")
"""The file in which Linux describes processors."""

LIMITS = Path("/sys/fs/cgroup")
"""The folder in which Linux lists the limits of control groups."""


class _Names(NamedTuple):
    """The files of a version of control groups, and the name of a line in the last of them."""

    limit: str
    used: str
    statistics: str
    reclaimable: str


_NEW = _Names("memory.max", "memory.current", "memory.stat", "inactive_file")
_OLD = _Names(
    "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file"
)


def machine_memory() -> float:
    """
    The bytes of memory that the machine has, or that the process may use if that is less; infinity
    if the system doesn't say.
    """
    try:
        installed = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        installed = float("inf")
    return min([installed, *(limit for limit, _ in _limits())])


def free_memory() -> float:
    """
    The bytes of `machine_memory` that no process needs now; infinity if the system doesn't say.
    """
    available = 1024 * _number_of(STATISTICS, "MemAvailable:", float("inf"))
    return min([available, *(limit - used for limit, used in _limits())])


def _limits() -> Iterator[Tuple[float, float]]:
    """
    Yields the memory limit and the used memory of each control group of the process, in both
    versions of control groups.
    """
    for folder, names in _groups():
        try:
            limit = float((folder / names.limit).read_text(encoding="utf-8"))
        except (OSError, ValueError):  # the word "max" stands for no limit
            continue
        try:
            used = float((folder / names.used).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            used = 0.0
        # The kernel's file cache counts as used, but is dropped when memory is needed.
        yield limit, used - _number_of(folder / names.statistics, names.reclaimable, 0.0)


def _groups() -> Iterator[Tuple[Path, _Names]]:
    """Yields the folders of the process's groups, and the folders above them."""
    try:
        groups = CONTROL_GROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for group in groups:
        _, _, rest = group.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            root, names = LIMITS, _NEW
        elif "memory" in controllers.split(","):
            root, names = LIMITS / "memory", _OLD
        else:
            continue
        own = root / path.lstrip("/")
        # A container may see its own group as the root, or not see its path at all.
        for folder in (own, *own.parents):
            if folder.is_relative_to(root):
                yield folder, names


def _number_of(file: Path, name: str, default: float) -> float:
    """The number on the line of a file that begins with the word `name`."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return default
    return next((float(line.split()[1]) for line in lines if line.split()[:1] == [name]), default)


def num_processors() -> int:
    """
    The number of processors that the process may run on: fewer than there are if a scheduler or a
    container has given it only some. A share of their time, as in `docker run --cpus`, is not seen.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_name() -> str:
    """The name of the machine's first processor, or of its kind if the system doesn't say more."""
    try:
        lines = PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    pairs = (line.partition(":") for line in lines)
    names = (name.strip() for key, _, name in pairs if key.strip() == "model name")
    return next(names, "") or platform.processor() or platform.machine()
