"""What a search may change from training to training."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Tuple


class Parameter(ABC):
    """One setting of a config, and the values that it may have. Abstract."""

    @abstractmethod
    def draw(self, name: str, trial: Any) -> Any:
        """
        # Parameters

        name : `str`
            Its place in the config.
        trial : `optuna.Trial`
            What draws. A value that it has drawn before comes again.

        # Returns

        `Any`
            A value as JSON has it.
        """

    def grid(self) -> Optional[Sequence[Any]]:
        """
        # Returns

        `Optional[Sequence[Any]]`
            All values, as Optuna keeps them; `None` if there is no end of them.
        """
        return None


@dataclass(frozen=True)
class Choice(Parameter):
    """
    One of a few values, each as likely as the others.

    # Parameters

    values : `Tuple[Any, ...]`
        Whatever JSON can write.
    """

    values: Tuple[Any, ...]

    def draw(self, name: str, trial: Any) -> Any:
        """As in `Parameter`."""
        return json.loads(trial.suggest_categorical(name, self.grid()))

    def grid(self) -> List[Any]:
        """
        # Returns

        `List[Any]`
            As JSON: Optuna stores no lists and objects, and takes `True` for 1.
        """
        return [json.dumps(value) for value in self.values]


@dataclass(frozen=True)
class WholeNumber(Parameter):
    """
    A whole number, each as likely as the others.

    # Parameters

    low : `int`
    high : `int`
        Both may be drawn.
    """

    low: int
    high: int

    def draw(self, name: str, trial: Any) -> int:
        """As in `Parameter`."""
        return trial.suggest_int(name, self.low, self.high)

    def grid(self) -> Sequence[int]:
        """As in `Parameter`."""
        # No list: there may be more of them than memory holds.
        return range(self.low, self.high + 1)


@dataclass(frozen=True)
class Number(Parameter):
    """
    A number between two bounds.

    # Parameters

    low : `float`
    high : `float`
    is_logarithmic : `bool`, optional (default = `False`)
        Draw its logarithm evenly rather than the number itself.
    step : `float`, optional (default = `None`)
        Round it to a multiple of this. A whole step gives whole numbers.
    """

    low: float
    high: float
    is_logarithmic: bool = False
    step: Optional[float] = None

    def draw(self, name: str, trial: Any) -> float:
        """As in `Parameter`."""
        drawn = trial.suggest_float(name, self.low, self.high, log=self.is_logarithmic)
        return self.rounded(drawn)

    def rounded(self, number: float) -> float:
        """
        # Returns

        `float`
            The multiple of `step` that is nearest, without what its own rounding adds.
        """
        if self.step is None:
            return number
        multiple = round(number / self.step) * self.step
        return multiple if isinstance(multiple, int) else float(f"{multiple:.12g}")
