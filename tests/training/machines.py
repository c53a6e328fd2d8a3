"""Two machines with a worker each, and a folder of their own."""

from pathlib import Path
from typing import Callable

import pytest

from tests.metrics.workers import run_in_two_workers


def run_on_two_machines(function: Callable[[int, Path], None], folder: Path) -> None:
    """
    Calls `function` with the rank 0 and 1 and a folder of this rank in two processes of one group;
    an error fails here.
    """

    def run(rank: int) -> None:
        function(rank, machine(folder, rank))

    for rank in range(2):
        machine(folder, rank).mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALLENNLP_PROCS_PER_NODE", "1")
        run_in_two_workers(run, folder)


def machine(folder: Path, rank: int) -> Path:
    """The folder of a machine."""
    return folder / f"machine-{rank}"
