"""Metrics in two processes at once, as in a distributed training."""

from pathlib import Path
from typing import Callable

import torch
from torch import distributed, multiprocessing


def run_in_two_workers(function: Callable[[int], None], folder: Path) -> None:
    """Calls `function` with the rank 0 and 1 in two processes of one group; an error fails here."""
    multiprocessing.start_processes(
        _run_as_worker, args=(function, folder / "meeting_point"), nprocs=2, start_method="fork"
    )


def _run_as_worker(rank: int, function: Callable[[int], None], meeting_point: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=2
    )
    function(rank)
    # A worker that is done at once would close connections that the other still makes.
    distributed.barrier()
    distributed.destroy_process_group()
