"""The training of one trial, in a process of its own."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from elmo_scratch.search.process_group import ProcessGroup
from elmo_scratch.search.trial_folder import NO_RESULT, TrialFolder

ALLENNLP = (sys.executable, "-m", "allennlp")
"""What is started."""


class TrialTraining(TrialFolder):
    """
    Runs `allennlp train`. What it prints goes to a file beside its folder: the folder must be new,
    or hold a training that `--recover` goes on with.

    # Parameters

    folder : `Path`
        Where the training writes to.
    config : `Path`
        What it trains.
    overrides : `Dict[str, Any]`
        What is different in this trial.
    arguments : `Sequence[str]`, optional (default = `()`)
        More of the command line.
    num_threads : `int`, optional (default = `None`)
        Of the processor, where `OMP_NUM_THREADS` doesn't say it.
    """

    def __init__(
        self,
        folder: Path,
        config: Path,
        overrides: Dict[str, Any],
        arguments: Sequence[str] = (),
        num_threads: Optional[int] = None,
    ) -> None:
        super().__init__(folder)
        environment = dict(os.environ)
        if num_threads is not None:
            environment.setdefault("OMP_NUM_THREADS", str(num_threads))
        command = [*ALLENNLP, "train", str(config), "-s", str(folder)]
        command += ["--overrides", json.dumps(overrides), *arguments]
        self._processes = ProcessGroup(command, self.log, environment)

    @property
    def pid(self) -> int:
        """The number of the group of its processes."""
        return self._processes.pid

    def has_ended(self) -> bool:
        """As in `TrialFolder`."""
        return self._processes.status is not None

    def has_failed(self) -> bool:
        """As in `TrialFolder`."""
        status = self._processes.status
        return status is not None and (status != 0 or not self.has_result())

    def stop(self) -> None:
        """As in `TrialFolder`."""
        self._processes.stop()

    def _untold(self) -> List[str]:
        """The signal that ended it, or that it ended well but without a result."""
        status = self._processes.status
        if status is not None and status < 0:
            return [f"ended by signal {-status}"]
        return [NO_RESULT] if status == 0 and not self.has_result() else []
