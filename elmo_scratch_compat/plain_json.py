"""Configs of others, which are plain JSON and no programs."""

import json
import math
import os
from pathlib import Path
from typing import Any, NoReturn, Union

from elmo_scratch_compat.bounds import CONFIG_DEPTH, CONFIG_SIZE


def read_plain_json(path: Path, source: Union[str, os.PathLike]) -> Any:
    """
    Reads a config that is a file of an archive or a folder, which messages call `source`. Raises
    `ConfigurationError` if it is larger or deeper than a training's, or no plain JSON that every
    parser understands, or asks for programs to be fetched.
    """
    from allennlp.common.checks import ConfigurationError

    try:
        if path.stat().st_size > CONFIG_SIZE:
            raise ValueError(f"it has more than {CONFIG_SIZE} bytes")
        config = json.loads(
            path.read_bytes(), parse_constant=_refuse, parse_float=_finite, parse_int=_whole
        )
        runs_programs = _trusts_remote_code(config)
        # Halves of surrogate pairs are no text.
        json.dumps(config, ensure_ascii=False).encode("utf-8")
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigurationError(
            f"{source}: expected its {path.name} to be plain JSON, as a training writes it, but: "
            f"{reason}. Anything else may be a program, which could read your files. If you trust "
            "it, unpack it, and name its folder to `allennlp evaluate` or `predict`."
        ) from None
    if runs_programs:
        raise ConfigurationError(
            f"{source}: its config asks for `trust_remote_code`: programs would be fetched and "
            "run. If you trust them, unpack it and name its folder instead."
        )
    return config


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _finite(number: str) -> float:
    """Reads a number with a fraction; Jsonnet knows none beyond a double either."""
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number[:20]} is too large")
    return value


def _whole(number: str) -> int:
    if len(number) > LONGEST_NUMBER:
        raise ValueError(f"{number[:20]}… is too large")
    return int(number)


LONGEST_NUMBER = 300
"""Digits of a whole number that a double has room for."""


def _trusts_remote_code(config: Any, depth: int = 0) -> bool:
    """
    Whether any part of a config asks for `trust_remote_code`. Raises `ValueError` if it is nested
    more than `CONFIG_DEPTH` levels deep.
    """
    if depth > CONFIG_DEPTH:
        raise ValueError(f"it is nested more than {CONFIG_DEPTH} levels deep")
    if isinstance(config, dict):
        if config.get("trust_remote_code"):
            return True
        config = list(config.values())
    return isinstance(config, list) and any(_trusts_remote_code(part, depth + 1) for part in config)
