"""The processors at hand."""

import os
from pathlib import Path
from typing import Tuple

CPU_INFO = Path("/proc/cpuinfo")
"""Where Linux tells of them."""


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


def vendor_and_family(info: Path = CPU_INFO) -> Tuple[str, int]:
    """
    # Parameters

    info : `Path`, optional (default = `CPU_INFO`)
        What the system tells of its processors.

    # Returns

    `Tuple[str, int]`
        Who made the first one, as it calls itself, such as AuthenticAMD, and its family. Nobody's
        and 0 where the system doesn't tell.
    """
    try:
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    # What was told first stands last.
    told = dict(reversed([(line + ":").split(":")[:2] for line in lines]))
    found = {key.strip(): value.strip() for key, value in told.items()}
    family = found.get("cpu family", "")
    return found.get("vendor_id", ""), int(family) if family.isdecimal() else 0
