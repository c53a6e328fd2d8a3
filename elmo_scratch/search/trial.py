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
"""What AllenNLP writes when all is trained; the archive comes after it."""

NO_RESULT = f"ended without a whole {RESULT}"
"""What became of a training that says that it ended well."""

LAST_LINES = 5
"""How many lines of the log of a training tell why it failed."""


class TrialFolder(ABC):
    """
    A training, by its folder and the log beside it. Abstract.

    # Parameters

    folder : `Path`
        Where the training writes to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        self._reported = 0

    @abstractmethod
    def has_ended(self) -> bool:
        """Whether it is over, well or not."""

    @abstractmethod
    def has_failed(self) -> bool:
        """Whether it is over, but came to no result."""

    @abstractmethod
    def stop(self) -> None:
        """Ends it, if it is not over."""

    @abstractmethod
    def _untold(self) -> List[str]:
        """What a training that failed can't print itself."""

    def has_result(self) -> bool:
        """Whether it has come to its end, and left what can be read."""
        try:
            json.loads((self.folder / RESULT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return True

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
            For each epoch since the last call how many there were until then, and the metric. Those
            before the first that was validated count, but are left out.

        # Raises

        ConfigurationError
            If the training measures no such thing.
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
        """
        # Returns

        `str`
            What it printed last, and what that doesn't tell.
        """
        printed = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        printed += self._untold()
        return "\n".join([line for line in printed if line.strip()][-LAST_LINES:])


def _epochs(folder: Path) -> List[Path]:
    """The metrics of all epochs that are over, in their order."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    numbers = [re.fullmatch(r"metrics_epoch_(\d+)\.json", name) for name in names]
    in_order = sorted(int(number[1]) for number in numbers if number)
    return [folder / f"metrics_epoch_{number}.json" for number in in_order]


class EndedTraining(TrialFolder):
    """
    A training that is over, as far as its folder tells.

    # Parameters

    folder : `Path`
        Where it wrote to.
    """

    def has_ended(self) -> bool:
        """As in `TrialFolder`."""
        return True

    def has_failed(self) -> bool:
        """As in `TrialFolder`."""
        return not self.has_result()

    def stop(self) -> None:
        """As in `TrialFolder`."""

    def pack(self, more: Optional[List[str]]) -> None:
        """
        Makes the archive, where the training was ended between its result and that.

        # Parameters

        more : `List[str]`, optional
            What else of the folder goes into it: `include_in_archive` of the config.
        """
        is_missing = not (self.folder / "model.tar.gz").exists()
        if is_missing and (self.folder / "best.th").exists():
            archive_model(self.folder, include_in_archive=more)

    def _untold(self) -> List[str]:
        return [] if self.has_result() else [NO_RESULT]


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
