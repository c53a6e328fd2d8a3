"""How a sweep file describes a parameter."""

import json
import re
import sys
from typing import Any, Dict

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.strict_json import JsonObject
from elmo_scratch.search.parameters import Choice, Number, Parameter, WholeNumber

KEYS: Dict[str, str] = {
    "constant": "value",
    "categorical": "values",
    "int_uniform": "min, max",
    "uniform": "min, max",
    "q_uniform": "min, max, q",
    "log_uniform_values": "min, max",
    "q_log_uniform_values": "min, max, q",
}
"""The distributions that are known here, and what describes them."""

LARGEST_WHOLE = 2**53
"""Optuna keeps whole numbers as floats, which have no more of them without gaps."""


NO_NUMBER_TO_YAML = re.compile(r"[-+]?[0-9]+\.?[0-9]*[eE][-+]?[0-9]+")
"""What looks like a number, but is a string to YAML 1.1: without a dot, or a sign after the e."""

WRITTEN_SO = "YAML takes 1e-4 for a word, 1.0e-4 for a number"


def described_parameter(source: str, name: str, description: Any) -> Parameter:
    """
    # Parameters

    source : `str`
        The file's name, for error messages.
    name : `str`
        The parameter's name.
    description : `Any`
        What the file says of it.

    # Returns

    `Parameter`

    # Raises

    ConfigurationError
        If the description makes no sense, or its distribution is not in `KEYS`.

    # Source

    The sweep configuration of Weights & Biases. Without a `distribution`, `min` and `max` mean
    whole numbers if both are.
    """
    keys = JsonObject(source, name, description)
    kind = keys.take("distribution", None) or _usual_distribution(description)
    if not isinstance(kind, str) or kind not in KEYS:
        known = "; ".join(f"{kind} ({needed})" for kind, needed in KEYS.items())
        raise ConfigurationError(
            f"{source}: `{name}` has the distribution {kind!r}, but what is known is: {known}. "
            "`log_uniform_values` takes the bounds themselves, not their logarithms."
        )
    parameter = _DESCRIBED[kind](keys)
    keys.finish()
    return parameter


def _usual_distribution(description: Dict[str, Any]) -> str:
    """Of a description that names none."""
    for kind in ("constant", "categorical"):
        if KEYS[kind] in description:
            return kind
    bounds = (description.get("min"), description.get("max"))
    return "int_uniform" if all(isinstance(bound, int) for bound in bounds) else "uniform"


def _constant(keys: JsonObject) -> Parameter:
    """`value`."""
    return _choice(keys, "value", [keys.take("value")])


def _categorical(keys: JsonObject) -> Parameter:
    """`values`."""
    values = keys.take("values")
    if not isinstance(values, list) or not values:
        raise keys.error("values", "a list of one or more values", values)
    return _choice(keys, "values", values)


def _choice(keys: JsonObject, key: str, values: Any) -> Parameter:
    """An error if a value is there twice, or meant to be a number but none."""
    for value in values:
        if isinstance(value, str) and NO_NUMBER_TO_YAML.fullmatch(value):
            raise keys.error(key, f"numbers as YAML knows them ({WRITTEN_SO})", value)
    if len({json.dumps(value) for value in values}) < len(values):
        raise keys.error(key, "all different", values)
    return Choice(tuple(values))


def _whole_number(keys: JsonObject) -> Parameter:
    """`min` and `max`."""
    low, high = _number(keys, "min"), _number(keys, "max")
    for key, bound in (("min", low), ("max", high)):
        if not isinstance(bound, int):
            raise keys.error(key, "a whole number", bound)
        if abs(bound) > LARGEST_WHOLE:
            raise keys.error(key, f"within {LARGEST_WHOLE} of 0", bound)
    return WholeNumber(int(low), int(_above(keys, low, high)))


def _evenly(keys: JsonObject, is_rounded: bool = False, is_logarithmic: bool = False) -> Parameter:
    """`min` and `max`, and `q`, the step."""
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


def _number(keys: JsonObject, key: str, *default: float) -> float:
    """A finite number."""
    value = keys.take(key, *default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise keys.error(key, f"a number ({WRITTEN_SO})", value)
    # Whole numbers may be too large for a float: `math.isfinite` fails there.
    if not abs(value) <= sys.float_info.max:
        raise keys.error(key, "a number that a float can hold", value)
    return value


def _above(keys: JsonObject, low: float, high: float) -> float:
    """The upper bound; an error if it is none."""
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
"""What makes a parameter of what the file says, for each distribution."""
