"""Sweep files, as Weights & Biases reads them: a metric and the parameters to vary."""

import json
import re
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import yaml
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.strict_json import StrictJson, one_line
from elmo_scratch_compat.bounds import SWEEP_NODES, SWEEP_SIZE


class Metric(NamedTuple):
    """
    The number that a search optimizes.

    `name` is the name that AllenNLP's callback uses in Weights & Biases, such as
    `validation/accuracy`, which stands for the best epoch's; or the name in the `metrics.json` of a
    training.
    """

    name: str
    is_maximized: bool

    @property
    def key(self) -> str:
        """The metric's name in the files of a training."""
        part, _, name = self.name.partition("/")
        places = {"validation": "best_validation_", "train": "training_"}
        return places[part] + name if name and part in places else self.name

    @property
    def is_of_every_epoch(self) -> bool:
        """Whether the metric is known as soon as an epoch is over."""
        return self.key != self.name

    def of(self, file: Path) -> float:
        """
        Reads the metric from `metrics.json`, or from `metrics_epoch_*.json`, which holds the best
        epoch so far. Raises `ConfigurationError` if the file has no such number.
        """
        metrics = json.loads(file.read_text(encoding="utf-8"))
        return self._of(metrics, file)

    def so_far(self, file: Path) -> Optional[float]:
        """
        Reads the metric from `metrics_epoch_*.json`; `None` if no epoch was validated until then.
        Raises `ConfigurationError` if the number is missing for any other reason.
        """
        metrics = json.loads(file.read_text(encoding="utf-8"))
        # AllenNLP's `should_validate_callback` may leave the first epochs out.
        is_too_early = self.key not in metrics and metrics.get("best_epoch", 0) is None
        return None if is_too_early else self._of(metrics, file)

    def _of(self, metrics: Dict[str, Any], file: Path) -> float:
        """Returns the metric's number; the error names the numbers that there are instead."""
        value = metrics.get(self.key)
        if isinstance(value, (int, float)):
            return value
        there_are = sorted(key for key, found in metrics.items() if isinstance(found, (int, float)))
        raise ConfigurationError(
            f"the metric of the search is `{self.name}`, but {file} has no number `{self.key}`; "
            f"there are: {', '.join(there_are)}"
        )


class Parameter(ABC):
    """One setting of a config, and the values that it may have. Abstract."""

    @abstractmethod
    def draw(self, name: str, trial: Any) -> Any:
        """
        # Parameters

        name : `str`
            The setting's place in the config, such as `trainer.optimizer.lr`.
        trial : `optuna.Trial`
            Draws the value. A name that it has drawn before gets the same value again.

        # Returns

        `Any`
            A value that JSON can write.
        """

    def grid(self) -> Optional[Sequence[Any]]:
        """
        # Returns

        `Optional[Sequence[Any]]`
            All values, as Optuna stores them; `None` if there are infinitely many.
        """
        return None


@dataclass(frozen=True)
class Choice(Parameter):
    """One of a few values that JSON can write, each as likely as the others."""

    values: Tuple[Any, ...]

    def draw(self, name: str, trial: Any) -> Any:
        return json.loads(trial.suggest_categorical(name, self.grid()))

    def grid(self) -> List[Any]:
        """Returns the values as JSON: Optuna stores no lists or objects, and takes `True` for 1."""
        return [json.dumps(value) for value in self.values]


@dataclass(frozen=True)
class WholeNumber(Parameter):
    """A whole number from `low` to `high`, both included, each as likely as the others."""

    low: int
    high: int

    def draw(self, name: str, trial: Any) -> int:
        return trial.suggest_int(name, self.low, self.high)

    def grid(self) -> Sequence[int]:
        # A range, not a list: there may be more numbers than memory holds.
        return range(self.low, self.high + 1)


@dataclass(frozen=True)
class Number(Parameter):
    """
    A number between two bounds, drawn evenly; with `is_logarithmic` its logarithm is drawn evenly.
    With a `step` it is rounded to a multiple of it, and a whole step gives whole numbers.
    """

    low: float
    high: float
    is_logarithmic: bool = False
    step: Optional[float] = None

    def draw(self, name: str, trial: Any) -> float:
        drawn = trial.suggest_float(name, self.low, self.high, log=self.is_logarithmic)
        return self.rounded(drawn)

    def rounded(self, number: float) -> float:
        """Returns the nearest multiple of `step`, without the rounding error of the product."""
        if self.step is None:
            return number
        multiple = round(number / self.step) * self.step
        return multiple if isinstance(multiple, int) else float(f"{multiple:.12g}")


KEYS: Dict[str, str] = {
    "constant": "value",
    "categorical": "values",
    "int_uniform": "min, max",
    "uniform": "min, max",
    "q_uniform": "min, max, q",
    "log_uniform_values": "min, max",
    "q_log_uniform_values": "min, max, q",
}
"""The supported distributions, and the keys that describe each."""

LARGEST_WHOLE = 2**53
"""Optuna stores whole numbers as floats, which have gaps between whole numbers beyond this."""


NO_NUMBER_TO_YAML = re.compile(r"[-+]?[0-9]+\.?[0-9]*[eE][-+]?[0-9]+")
"""
Matches strings that look like numbers, but are strings to YAML 1.1: they lack a dot, or a sign
after the e.
"""

WRITTEN_SO = "YAML takes 1e-4 for a word, 1.0e-4 for a number"


def described_parameter(source: str, name: str, description: Any) -> Parameter:
    """
    Builds a parameter from its description in a sweep file. `source` is the file's name, for
    errors. Raises `ConfigurationError` if the description is wrong, or its distribution is not in
    `KEYS`.
    """
    keys = StrictJson(source, name, description)
    kind = keys.take("distribution", None) or _usual_distribution(description)
    if not isinstance(kind, str) or kind not in KEYS:
        known = "; ".join(f"{kind} ({needed})" for kind, needed in KEYS.items())
        raise ConfigurationError(
            f"{source}: `{one_line(name)}` has the distribution {kind!r}, but what is known is: "
            f"{known}. `log_uniform_values` takes the bounds themselves, not their logarithms."
        )
    parameter = _DESCRIBED[kind](keys)
    keys.finish()
    return parameter


def _usual_distribution(description: Dict[str, Any]) -> str:
    """
    Returns the distribution of a description that names none, by the rules of Weights & Biases:
    `min` and `max` mean whole numbers if both are whole.
    """
    for kind in ("constant", "categorical"):
        if KEYS[kind] in description:
            return kind
    bounds = (description.get("min"), description.get("max"))
    return "int_uniform" if all(isinstance(bound, int) for bound in bounds) else "uniform"


def _constant(keys: StrictJson) -> Parameter:
    """Reads `value`."""
    return _choice(keys, "value", [keys.take("value")])


def _categorical(keys: StrictJson) -> Parameter:
    """Reads `values`."""
    values = keys.take("values")
    if not isinstance(values, list) or not values:
        raise keys.error("values", "a list of one or more values", values)
    return _choice(keys, "values", values)


def _choice(keys: StrictJson, key: str, values: Any) -> Parameter:
    """Refuses values that come twice, and strings that are meant to be numbers."""
    for value in values:
        if isinstance(value, str) and NO_NUMBER_TO_YAML.fullmatch(value):
            raise keys.error(key, f"numbers as YAML knows them ({WRITTEN_SO})", value)
    if len({json.dumps(value) for value in values}) < len(values):
        raise keys.error(key, "all different", values)
    return Choice(tuple(values))


def _whole_number(keys: StrictJson) -> Parameter:
    """Reads `min` and `max`, both whole."""
    low, high = _number(keys, "min"), _number(keys, "max")
    for key, bound in (("min", low), ("max", high)):
        if not isinstance(bound, int):
            raise keys.error(key, "a whole number", bound)
        if abs(bound) > LARGEST_WHOLE:
            raise keys.error(key, f"within {LARGEST_WHOLE} of 0", bound)
    return WholeNumber(int(low), int(_above(keys, low, high)))


def _evenly(keys: StrictJson, is_rounded: bool = False, is_logarithmic: bool = False) -> Parameter:
    """Reads `min` and `max`, and the step `q` if `is_rounded`."""
    low, high = _number(keys, "min"), _number(keys, "max")
    step = _number(keys, "q", 1) if is_rounded else None
    if is_logarithmic and low <= 0:
        raise keys.error("min", "above 0, since logarithms are drawn", low)
    if step is not None and step <= 0:
        raise keys.error("q", "a step above 0", step)
    number = Number(low, _above(keys, low, high), is_logarithmic, step)
    if not high - low <= sys.float_info.max:
        raise keys.error("max", f"no further from `min`, {low}, than a float can tell", high)
    if step is not None:
        if not max(abs(low), abs(high)) / step <= sys.float_info.max:
            raise keys.error("q", "a step of which a float can hold the multiples", step)
        for bound in (number.rounded(low), number.rounded(high)):
            if not low <= bound <= high:
                raise keys.error("q", f"a step of which {low} and {high} are multiples", step)
    return number


def _number(keys: StrictJson, key: str, *default: float) -> float:
    """Reads a finite number."""
    value = keys.take(key, *default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise keys.error(key, f"a number ({WRITTEN_SO})", value)
    # Whole numbers may be too large for a float: `math.isfinite` fails there.
    if not abs(value) <= sys.float_info.max:
        raise keys.error(key, "a number that a float can hold", value)
    return value


def _above(keys: StrictJson, low: float, high: float) -> float:
    """Returns `high`; refuses it if it is not above `low`."""
    if high <= low:
        raise keys.error("max", f"above `min`, which is {low}", high)
    return high


_DESCRIBED = {
    "constant": _constant,
    "categorical": _categorical,
    "int_uniform": _whole_number,
    "uniform": _evenly,
    "q_uniform": lambda keys: _evenly(keys, is_rounded=True),
    "log_uniform_values": lambda keys: _evenly(keys, is_logarithmic=True),
    "q_log_uniform_values": lambda keys: _evenly(keys, is_rounded=True, is_logarithmic=True),
}
"""The function that builds a parameter of each distribution."""


METHODS = ("bayes", "grid", "random")

PASSED_OVER = (
    *("apiVersion", "kind", "name", "description", "entity", "project", "program", "command"),
    *("job", "image_uri", "controller", "scheduler"),
)
"""The keys of a sweep file that only Weights & Biases needs."""


class Halving(NamedTuple):
    """
    Stops trainings that are behind: after `first` epochs one training in `factor` goes on, and is
    compared again after `factor` times as many epochs.
    """

    first: int
    factor: int


class Sweep(NamedTuple):
    """
    What a sweep file asks for.

    # Parameters

    method : `str`
        How values are chosen: one of `METHODS`.
    metric : `Metric`
        The number to optimize.
    parameters : `Mapping[str, Parameter]`
        The parameters by their places in the config, such as `trainer.optimizer.lr`.
    run_cap : `int`, optional
        The number of trainings, at most.
    halving : `Halving`, optional
        Which trainings are stopped early.
    """

    method: str
    metric: Metric
    parameters: Mapping[str, Parameter]
    run_cap: Optional[int] = None
    halving: Optional[Halving] = None


def read_sweep(path: Path) -> Sweep:
    """
    Reads the keys of a sweep file that matter to a search. Keys that only Weights & Biases needs
    are ignored: `program`, `command` and the like, the `target` and `impute` of a metric, and
    `strict` of early termination.

    # Parameters

    path : `Path`
        A YAML file.

    # Returns

    `Sweep`

    # Raises

    ConfigurationError
        If a value of the file is wrong, or it has a key that Weights & Biases doesn't know.

    # Source

    The sweep configuration of Weights & Biases, and the schema of it in `wandb/sweeps`.
    """
    source = str(path)
    file = StrictJson(source, "", _content(path))
    method = file.take("method")
    if method not in METHODS:
        raise file.error("method", f"one of {', '.join(METHODS)}", method)
    described = file.take("parameters")
    if not isinstance(described, dict) or not described:
        raise file.error("parameters", "an object with a key for each parameter", described)
    parameters = {
        name: described_parameter(source, name, description)
        for name, description in described.items()
    }
    for name, parameter in parameters.items():
        if method == "grid" and parameter.grid() is None:
            raise ConfigurationError(
                f"{path}: the method is grid, but `{one_line(name)}` has no end of values. Give it "
                "a list of `values`, or take the method random or bayes."
            )
    sweep = Sweep(
        method,
        _metric(file.block("metric")),
        parameters,
        file.size("run_cap") if "run_cap" in file else None,
        _halving(file.block("early_terminate")) if "early_terminate" in file else None,
    )
    _finish(file, "run_cap", "early_terminate", *PASSED_OVER)
    return sweep


def _content(path: Path) -> Any:
    """Reads a YAML file, and returns its content in the types of JSON."""
    try:
        if path.stat().st_size > SWEEP_SIZE:
            raise ConfigurationError(f"{path}: it has more than {SWEEP_SIZE} bytes")
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        if node is None:
            return None
        if _num_values(node, {}) > SWEEP_NODES:
            raise ConfigurationError(
                f"{path}: with its aliases written out it has more than {SWEEP_NODES} values"
            )
        # YAML also has dates and keys that are no strings.
        return json.loads(json.dumps(loader.construct_document(node), default=str))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: can't be read ({error})") from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"{path}: expected a file in YAML, but {reason}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path}: expected YAML that JSON can write too, but: {error}"
        ) from None


def _num_values(node: Any, known: Dict[int, int]) -> int:
    """
    How many values a node of YAML stands for: an alias stands for all that it names, so that a few
    lines may stand for billions. `known` are the counts of nodes by their `id`. Raises `ValueError`
    if the node holds itself.
    """
    if id(node) in known:
        if known[id(node)] == 0:
            raise ValueError("Circular reference: a value holds itself")
        return known[id(node)]
    known[id(node)] = 0
    parts: List[Any] = [] if isinstance(node, yaml.ScalarNode) else node.value
    if isinstance(node, yaml.MappingNode):
        parts = [part for pair in parts for part in pair]
    known[id(node)] = 1 + sum(_num_values(part, known) for part in parts)
    return known[id(node)]


def _finish(block: StrictJson, *others: str) -> None:
    """Refuses a key that is neither read nor one of `others`: it may be a typo."""
    for key in others:
        block.take(key, None)
    block.finish()


def _metric(block: StrictJson) -> Metric:
    """Reads `name` and `goal`, which is to minimize by default."""
    name, goal = block.take("name"), block.take("goal", "minimize")
    if not isinstance(name, str):
        raise block.error("name", "the name of a metric", name)
    if goal not in ("minimize", "maximize"):
        raise block.error("goal", "minimize or maximize", goal)
    _finish(block, "target", "impute", "impute_while_running")
    return Metric(name, goal == "maximize")


def _halving(block: StrictJson) -> Halving:
    """Reads `min_iter`, or `max_iter` and the number `s` of comparisons before it; and `eta`."""
    kind = block.take("type")
    if kind != "hyperband":
        raise block.error("type", "hyperband", kind)
    factor = block.size("eta", 3, least=2)
    if "min_iter" in block:
        first = block.size("min_iter")
    else:
        # No training is longer than the smallest factor to this power.
        halvings = min(block.size("s"), 64)
        first = max(1, block.size("max_iter") // factor**halvings)
    _finish(block, "min_iter", "max_iter", "s", "strict")
    return Halving(first, factor)
