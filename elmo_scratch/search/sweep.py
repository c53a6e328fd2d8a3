"""Sweep files, as Weights & Biases reads them."""

import json
from pathlib import Path
from typing import Mapping, NamedTuple, Optional

import yaml
from allennlp.common.checks import ConfigurationError

from elmo_scratch.checked_json import JsonObject
from elmo_scratch.search.described_parameter import described_parameter
from elmo_scratch.search.metric import Metric
from elmo_scratch.search.parameters import Parameter

METHODS = ("bayes", "grid", "random")


class Halving(NamedTuple):
    """
    Trainings that are behind are stopped.

    # Parameters

    first : `int`
        After so many epochs for the first time.
    factor : `int`
        One in so many goes on, to be compared again after so many times as many epochs.
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
        What shall be as good as possible.
    parameters : `Mapping[str, Parameter]`
        By their places in the config, such as `trainer.optimizer.lr`.
    run_cap : `int`, optional
        How many trainings, at most.
    halving : `Halving`, optional
        Which of them are stopped early.
    """

    method: str
    metric: Metric
    parameters: Mapping[str, Parameter]
    run_cap: Optional[int] = None
    halving: Optional[Halving] = None


def read_sweep(path: Path) -> Sweep:
    """
    Reads what matters to a search from a sweep file; what only Weights & Biases needs, such as
    `program` and `command`, is passed over.

    # Parameters

    path : `Path`
        A YAML file.

    # Returns

    `Sweep`

    # Raises

    ConfigurationError
        If the file makes no sense.

    # Source

    The sweep configuration of Weights & Biases.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: can't be read ({error})") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: expected a file in YAML, but {error}") from None
    source = str(path)
    # YAML also has dates, and keys that are no strings.
    file = JsonObject(source, "", json.loads(json.dumps(content, default=str)))
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
                f"{path}: the method is grid, but `{name}` has no end of values. Give it a list of "
                "`values`, or take the method random or bayes."
            )
    return Sweep(
        method,
        _metric(file.block("metric")),
        parameters,
        file.size("run_cap") if "run_cap" in file else None,
        _halving(file.block("early_terminate")) if "early_terminate" in file else None,
    )


def _metric(block: JsonObject) -> Metric:
    """`name`, and `goal`: to minimize, if nothing is said."""
    name, goal = block.take("name"), block.take("goal", "minimize")
    if not isinstance(name, str):
        raise block.error("name", "the name of a metric", name)
    if goal not in ("minimize", "maximize"):
        raise block.error("goal", "minimize or maximize", goal)
    return Metric(name, goal == "maximize")


def _halving(block: JsonObject) -> Halving:
    """`min_iter`, or `max_iter` and how many comparisons `s` before it; `eta`."""
    kind = block.take("type")
    if kind != "hyperband":
        raise block.error("type", "hyperband", kind)
    factor = block.size("eta", 3, least=2)
    if "min_iter" in block:
        return Halving(block.size("min_iter"), factor)
    return Halving(max(1, int(block.size("max_iter") / factor ** block.size("s"))), factor)
