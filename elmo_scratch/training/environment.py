"""
What a training runs on: versions and the machine, which its folder keeps, and the workers of a
distributed training. A single process is one worker.
"""

import json
import math
import platform
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, List, TypeVar

import allennlp.version
import torch
import torch.distributed as dist
from allennlp.common.util import is_distributed

from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.machine import machine_memory, num_processors, processor_name
from elmo_scratch.version import VERSION

ENVIRONMENT = "environment.json"
"""The file's name."""


def environment() -> Dict[str, Any]:
    """
    What this process runs on: `versions` by the names of packages, `system`, `processor`,
    `num_processors` and `num_threads`, `memory_bytes` unless the system doesn't say, `gpu` if one
    is in use, and `started`, the time now.
    """
    memory = machine_memory()
    return {
        "versions": {
            "elmo_scratch": VERSION,
            "AllenNLP": allennlp.version.VERSION,
            "PyTorch": torch.__version__,
            "Python": platform.python_version(),
        },
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor_name(),
        "num_processors": num_processors(),
        "num_threads": torch.get_num_threads(),
        **({"memory_bytes": int(memory)} if math.isfinite(memory) else {}),
        # To ask for the name of a GPU that nobody uses would take memory of it.
        **({"gpu": torch.cuda.get_device_name()} if torch.cuda.is_initialized() else {}),
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def write_environment(folder: Path) -> None:
    """
    Writes `environment.json` for the training that has begun in a folder, or goes on there. Without
    the file nothing is lost but a few lines of a report: an error of the disk is passed over.
    """
    with suppress(OSError), atomic_write(folder / ENVIRONMENT) as part:
        part.write_text(json.dumps(environment(), indent=2) + "\n", encoding="utf-8")


T = TypeVar("T")


def own_rank() -> int:
    """Returns the number of this worker among the workers of all machines, from 0."""
    return dist.get_rank() if is_distributed() else 0


def gathered(own: T) -> List[T]:
    """
    Gathers one object from each worker, in the workers' order. All workers have to call this, with
    an object that can be pickled.
    """
    if not is_distributed():
        return [own]
    told = [own] * dist.get_world_size()
    dist.all_gather_object(told, own)
    return told
