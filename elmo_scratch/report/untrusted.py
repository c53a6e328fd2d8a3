"""Reads JSON and text that others have written: sizes, depth and characters are checked."""

import json
import unicodedata
from pathlib import Path
from typing import Any, Dict

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.strict_json import StrictJson

MAX_BYTES = 2**26
"""A JSON file may be as large. Metrics with three matrices over 1,000 words take 40 MiB."""

MAX_DEPTH = 50
"""How many lists and objects may lie within each other."""

JOINERS = "\u200c\u200d"
"""Invisible characters that the spelling of words in some scripts needs."""


def read_json_object(path: Path) -> Dict[str, Any]:
    """
    The JSON object that a file holds. Raises `ConfigurationError` if it holds none, or as
    `read_json` does.
    """
    record = read_json(path)
    StrictJson(str(path), "", record)
    return dict(record)


def read_json(path: Path) -> Any:
    """
    The JSON that a file holds. Raises `ConfigurationError` if it holds none, is longer than
    `MAX_BYTES`, or is nested deeper than `MAX_DEPTH`.
    """
    try:
        if not path.is_file():
            raise ConfigurationError(f"{path}: there is no such file")
        if path.stat().st_size > MAX_BYTES:
            raise ConfigurationError(
                f"{path}: expected JSON of at most {MAX_BYTES // 2**20} MiB, but it is larger"
            )
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror})") from None
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError as error:
        raise ConfigurationError(f"{path}: expected JSON, but {error}") from None
    _check_depth(path, record)
    return record


def _check_depth(path: Path, record: Any) -> None:
    level = [record] if isinstance(record, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            part
            for whole in level
            for part in (whole.values() if isinstance(whole, dict) else whole)
            if isinstance(part, (dict, list))
        ]
        if not level:
            return
    raise _too_deep(path)


def _too_deep(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{path}: expected JSON with at most {MAX_DEPTH} levels, but it is nested more deeply"
    )


def printable(text: str, most: int = 200) -> str:
    """
    The text without characters that are no text: controls, lone surrogates and marks that change
    the direction of writing each become U+FFFD. Longer than `most`, it ends in an ellipsis.
    """
    if len(text) > most:
        text = f"{text[: most - 1]}…"
    return "".join(
        "\ufffd" if unicodedata.category(one)[0] == "C" and one not in JOINERS else one
        for one in text
    )
