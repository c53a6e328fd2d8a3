"""The training of one trial, in a process of its own."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from elmo_scratch.search.metric import Metric
from elmo_scratch.search.process_group import ProcessGroup

ALLENNLP = (sys.executable, "-m", "allennlp")
"""What is started."""

RESULT = "metrics.json"
"""What AllenNLP writes last."""

LAST_LINES = 5
"""How many lines of the log of a training tell why it failed."""


class TrialTraining:
    """
    Runs `allennlp train`. What it prints goes to a file beside its folder: the folder must be new.

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
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        self._reported = 0
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
        """Whether it is over, well or not."""
        return self._processes.status is not None

    def has_failed(self) -> bool:
        """Whether it is over, but came to no result."""
        return self._processes.status not in (None, 0) or self._has_no_result()

    def result(self, metric: Metric) -> float:
        """
        # Returns

        `float`
            What a training has reached that has ended well.

        # Raises

        ConfigurationError
            If it measures no such thing.
        """
        return metric.of(self.folder / RESULT)

    def new_epochs(self, metric: Metric) -> Iterator[Tuple[int, float]]:
        """
        # Returns

        `Iterator[Tuple[int, float]]`
            For each epoch since the last call how many there were until then, and the metric.

        # Raises

        ConfigurationError
            If the training measures no such thing.
        """
        for file in _epochs(self.folder)[self._reported :]:
            try:
                value = metric.of(file)
            except json.JSONDecodeError:  # it is being written
                return
            self._reported += 1
            yield self._reported, value

    def stop(self) -> None:
        """Ends it, if it is not over."""
        self._processes.stop()

    def last_lines(self) -> str:
        """
        # Returns

        `str`
            What it printed last, and what that doesn't tell: the signal that ended it, or that it
            ended well but without a result.
        """
        printed = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        status = self._processes.status
        if status is not None and status < 0:
            printed.append(f"ended by signal {-status}")
        if self._has_no_result():
            printed.append(f"ended without a whole {RESULT}")
        return "\n".join([line for line in printed if line.strip()][-LAST_LINES:])

    def _has_no_result(self) -> bool:
        """Whether it says that it ended well, but left nothing that can be read."""
        return self._processes.status == 0 and not _is_json(self.folder / RESULT)


def _epochs(folder: Path) -> List[Path]:
    """The metrics of all epochs that are over, in their order."""
    numbers = [re.fullmatch(r"metrics_epoch_(\d+)\.json", file.name) for file in _files(folder)]
    in_order = sorted(int(number[1]) for number in numbers if number)
    return [folder / f"metrics_epoch_{number}.json" for number in in_order]


def _is_json(file: Path) -> bool:
    try:
        json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _files(folder: Path) -> List[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []
