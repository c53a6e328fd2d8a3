"""Sweep files, as Weights & Biases reads them."""

import json
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Optional

import yaml
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.strict_json import JsonObject
from elmo_scratch.search.described_parameter import described_parameter
from elmo_scratch.search.metric import Metric
from elmo_scratch.search.parameters import Parameter

METHODS = ("bayes", "grid", "random")

PASSED_OVER = (
    *("apiVersion", "kind", "name", "description", "entity", "project", "program", "command"),
    *("job", "image_uri", "controller", "scheduler"),
)
"""The keys of a sweep file that only Weights & Biases needs."""


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
    Reads what matters to a search from a sweep file. What only Weights & Biases needs is passed
    over, such as `program` and `command`, the `target` of a metric and what it imputes, and whether
    early termination is `strict`.

    # Parameters

    path : `Path`
        A YAML file.

    # Returns

    `Sweep`

    # Raises

    ConfigurationError
        If the file makes no sense, or has a key that Weights & Biases doesn't know.

    # Source

    The sweep configuration of Weights & Biases, and the schema of it in `wandb/sweeps`.
    """
    source = str(path)
    file = JsonObject(source, "", _content(path))
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
    """What a file in YAML says, as JSON has it."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        # YAML also has dates, keys that are no strings, and lists that hold themselves.
        return json.loads(json.dumps(content, default=str))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: can't be read ({error})") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: expected a file in YAML, but {error}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{path}: expected YAML that JSON can write too, but: {error}"
        ) from None


def _finish(block: JsonObject, *others: str) -> None:
    """An error if there is a key that is neither read nor one of `others`: it may be a slip."""
    for key in others:
        block.take(key, None)
    block.finish()


def _metric(block: JsonObject) -> Metric:
    """`name`, and `goal`: to minimize, if nothing is said."""
    name, goal = block.take("name"), block.take("goal", "minimize")
    if not isinstance(name, str):
        raise block.error("name", "the name of a metric", name)
    if goal not in ("minimize", "maximize"):
        raise block.error("goal", "minimize or maximize", goal)
    _finish(block, "target", "impute", "impute_while_running")
    return Metric(name, goal == "maximize")


def _halving(block: JsonObject) -> Halving:
    """`min_iter`, or `max_iter` and how many comparisons `s` before it; `eta`."""
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
