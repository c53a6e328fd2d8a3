"""What the training of a trial has left in its folder."""

import json
import re
from pathlib import Path
from typing import Iterator, List, Tuple

from elmo_scratch.search.metric import Metric

RESULT = "metrics.json"
"""What AllenNLP writes last."""

LAST_LINES = 5
"""How many lines of the log of a training tell why it failed."""


class TrialFolder:
    """
    A training that is over, by its folder and the log beside it.

    # Parameters

    folder : `Path`
        Where the training wrote to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        self._reported = 0

    def has_ended(self) -> bool:
        """Whether it is over, well or not."""
        return True

    def has_result(self) -> bool:
        """Whether it has come to its end, and left what can be read."""
        try:
            json.loads((self.folder / RESULT).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return True

    def has_failed(self) -> bool:
        """Whether it is over, but came to no result."""
        return not self.has_result()

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

    def last_lines(self) -> str:
        """
        # Returns

        `str`
            What it printed last, and what that doesn't tell.
        """
        printed = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        printed += self._untold()
        return "\n".join([line for line in printed if line.strip()][-LAST_LINES:])

    def _untold(self) -> List[str]:
        """What a training that failed can't print itself."""
        return [f"ended without a whole {RESULT}"]


def _epochs(folder: Path) -> List[Path]:
    """The metrics of all epochs that are over, in their order."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    numbers = [re.fullmatch(r"metrics_epoch_(\d+)\.json", name) for name in names]
    in_order = sorted(int(number[1]) for number in numbers if number)
    return [folder / f"metrics_epoch_{number}.json" for number in in_order]
