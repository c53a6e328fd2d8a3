"""What the training of a trial leaves in its folder."""

import json
import re
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Iterator, List, Tuple

from elmo_scratch.search.metric import Metric

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
