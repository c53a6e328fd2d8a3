"""One training of a search, and what it leaves in its folder."""

import json
import os
import re
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from allennlp.models.archival import archive_model

from elmo_scratch.search.processes import ProcessGroup
from elmo_scratch.search.sweep import Metric

RESULT = "metrics.json"
"""The file that AllenNLP writes at the end of a training, right before the archive."""

NO_RESULT = f"ended without a whole {RESULT}"
"""The reason given for a training that ended with status 0, but failed."""

LAST_LINES = 5
"""The number of lines of a training's log that are shown when it fails."""


class TrialFolder(ABC):
    """
    A training, known by its folder and the log beside it. Abstract.

    # Parameters

    folder : `Path`
        The folder that the training writes to. The log is `<folder>.log`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        self._reported = 0

    @abstractmethod
    def has_ended(self) -> bool:
        """Whether the training is over, successfully or not."""

    @abstractmethod
    def has_failed(self) -> bool:
        """Whether the training is over, but has no result."""

    @abstractmethod
    def stop(self) -> None:
        """Kills the training, if it is not over."""

    @abstractmethod
    def _untold(self) -> List[str]:
        """Returns lines about a failure that the training can't print itself."""

    def has_result(self) -> bool:
        """Whether the folder has a readable `metrics.json`."""
        try:
            json.loads((self.folder / RESULT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return True

    def result(self, metric: Metric) -> float:
        """
        Returns the metric of a training that has completed. Raises `ConfigurationError` if the
        training doesn't measure it.
        """
        return metric.of(self.folder / RESULT)

    def new_epochs(self, metric: Metric) -> Iterator[Tuple[int, float]]:
        """
        Yields `(epoch, metric)` for each epoch since the last call, epochs counted from 1. Epochs
        before the first validation count, but are left out. Raises `ConfigurationError` if the
        training doesn't measure the metric.
        """
        for file in _epochs(self.folder)[self._reported :]:
            try:
                value = metric.so_far(file)
            except json.JSONDecodeError:  # it is being written
                return
            self._reported += 1
            if value is not None:
                yield self._reported, value

    def last_lines(self) -> str:
        """Returns the last lines of the log, and what the training couldn't print itself."""
        printed = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        printed += self._untold()
        return "\n".join([line for line in printed if line.strip()][-LAST_LINES:])


def _epochs(folder: Path) -> List[Path]:
    """Returns the metrics files of all epochs that are over, in order."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    numbers = [re.fullmatch(r"metrics_epoch_(\d+)\.json", name) for name in names]
    in_order = sorted(int(number[1]) for number in numbers if number)
    return [folder / f"metrics_epoch_{number}.json" for number in in_order]


class EndedTraining(TrialFolder):
    """A training that is over; its folder is all that is known of it."""

    def has_ended(self) -> bool:
        return True

    def has_failed(self) -> bool:
        return not self.has_result()

    def stop(self) -> None:
        """Does nothing: the training is over."""

    def pack(self, more: Optional[List[str]]) -> None:
        """
        Makes the archive, if the training was killed after its result and before its archive.
        `more` is the config's `include_in_archive`.
        """
        is_missing = not (self.folder / "model.tar.gz").exists()
        if is_missing and (self.folder / "best.th").exists():
            archive_model(self.folder, include_in_archive=more)

    def _untold(self) -> List[str]:
        return [] if self.has_result() else [NO_RESULT]


ALLENNLP = (sys.executable, "-m", "allennlp")
"""The command that starts AllenNLP in this Python environment."""


class TrialTraining(TrialFolder):
    """
    Runs `allennlp train`, whose output goes to the log beside its folder. The folder must be new,
    or `arguments` hold `--recover`. `num_threads` are processor threads; `OMP_NUM_THREADS` in the
    environment comes first.
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
        """The id of the training's process group."""
        return self._processes.pid

    def has_ended(self) -> bool:
        return self._processes.status is not None

    def has_failed(self) -> bool:
        status = self._processes.status
        return status is not None and (status != 0 or not self.has_result())

    def stop(self) -> None:
        self._processes.stop()

    def _untold(self) -> List[str]:
        """Names the signal that ended the training, or says that it left no result."""
        status = self._processes.status
        if status is not None and status < 0:
            return [f"ended by signal {-status}"]
        return [NO_RESULT] if status == 0 and not self.has_result() else []
