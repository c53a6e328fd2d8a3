"""The number that a search makes as small or as large as it can."""

import json
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional

from allennlp.common.checks import ConfigurationError


class Metric(NamedTuple):
    """
    # Parameters

    name : `str`
        As AllenNLP's callback calls it in Weights & Biases, such as `validation/accuracy`, which
        stands for the best epoch's; or as in the `metrics.json` of a training.
    is_maximized : `bool`
        Whether more is better.
    """

    name: str
    is_maximized: bool

    @property
    def key(self) -> str:
        """Its name in the files of a training."""
        part, _, name = self.name.partition("/")
        places = {"validation": "best_validation_", "train": "training_"}
        return places[part] + name if name and part in places else self.name

    @property
    def is_of_every_epoch(self) -> bool:
        """Whether it is known as soon as an epoch is over."""
        return self.key != self.name

    def of(self, file: Path) -> float:
        """
        # Parameters

        file : `Path`
            `metrics.json`, or `metrics_epoch_*.json`, which has the best epoch so far.

        # Returns

        `float`
            What the training has reached.

        # Raises

        ConfigurationError
            If the file has no such number.
        """
        metrics = json.loads(file.read_text(encoding="utf-8"))
        return self._of(metrics, file)

    def so_far(self, file: Path) -> Optional[float]:
        """
        # Parameters

        file : `Path`
            `metrics_epoch_*.json`.

        # Returns

        `float`
            As `of`, but `None` where that is missing because no epoch was validated until then.

        # Raises

        ConfigurationError
            As there.
        """
        metrics = json.loads(file.read_text(encoding="utf-8"))
        # AllenNLP's `should_validate_callback` may leave the first epochs out.
        is_too_early = self.key not in metrics and metrics.get("best_epoch", 0) is None
        return None if is_too_early else self._of(metrics, file)

    def _of(self, metrics: Dict[str, Any], file: Path) -> float:
        """The number, or what there is in its place."""
        value = metrics.get(self.key)
        if isinstance(value, (int, float)):
            return value
        there_are = sorted(key for key, found in metrics.items() if isinstance(found, (int, float)))
        raise ConfigurationError(
            f"the metric of the search is `{self.name}`, but {file} has no number `{self.key}`; "
            f"there are: {', '.join(there_are)}"
        )
