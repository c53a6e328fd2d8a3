"""Reads JSON and text that others have written, and says what is wrong with them."""

import json
import math
import unicodedata
from pathlib import Path
from typing import Any, Dict, Optional, Type

from allennlp.common.checks import ConfigurationError

from elmo_scratch_compat.bounds import OPTIONS_CLIP, OPTIONS_NUMBER

_REQUIRED = object()

SHOWN = 200
"""Characters of a value in an error."""

MAX_BYTES = 2**26
"""A JSON file may be as large. Metrics with three matrices over 1,000 words take 40 MiB."""

MAX_DEPTH = 50
"""How many lists and objects may lie within each other."""

JOINERS = "\u200c\u200d"
"""Invisible characters that the spelling of words in some scripts needs."""


class StrictJson:
    """
    One JSON object of a file, which remembers the keys that were asked for.

    # Parameters

    source : `str`
        The file's name, for error messages.
    name : `str`
        The key of the object, empty for the whole file.
    record : `Any`
        The decoded JSON.

    # Raises

    ConfigurationError
        If `record` is no object; from the methods, if a key is missing or a value makes no sense.
    """

    def __init__(self, source: str, name: str, record: Any) -> None:
        self._source, self._name = source, name
        if not isinstance(record, dict):
            where = f"`{one_line(name)}`" if name else "the file"
            raise ConfigurationError(
                f"{source}: expected {where} to be a JSON object, but got {_kind(record)}"
            )
        self._record: Dict[str, Any] = record
        self._read: set = set()

    def __contains__(self, key: str) -> bool:
        return key in self._record

    def take(self, key: str, default: Any = _REQUIRED) -> Any:
        """The value of a key. Raises an error if it is missing and there is no default."""
        self._read.add(key)
        if key in self._record:
            return self._record[key]
        if default is _REQUIRED:
            raise ConfigurationError(
                f"{self._source}: the key `{key}`{self._place()} is missing; there are "
                f"{sorted(self._record)}"
            )
        return default

    def block(self, key: str) -> "StrictJson":
        """The object within this one at a key."""
        return StrictJson(self._source, key, self.take(key))

    def size(self, key: str, default: Any = _REQUIRED, least: int = 1) -> int:
        """
        A whole number of at least `least` and at most `OPTIONS_NUMBER`; null counts as missing.
        """
        value = self.take(key, default)
        value = default if value is None and default is not _REQUIRED else value
        if type(value) is not int or value < least:
            raise self.error(key, f"a whole number of at least {least}", value)
        if value > OPTIONS_NUMBER:
            raise self.error(key, f"a whole number of at most {OPTIONS_NUMBER}", value)
        return value

    def clip(self, key: str) -> Optional[float]:
        """A positive bound of at most `OPTIONS_CLIP`, or `None`."""
        value = self.take(key, None)
        if value is None:
            return None
        if type(value) not in (int, float) or not 0 < value < math.inf:
            raise self.error(key, "a positive number, or null for no bound", value)
        if value > OPTIONS_CLIP:
            raise self.error(key, f"at most {OPTIONS_CLIP:g}, or null for no bound", value)
        return value

    def flag(self, key: str) -> bool:
        """A boolean."""
        value = self.take(key)
        if not isinstance(value, bool):
            raise self.error(key, "true or false", value)
        return value

    def unread(self) -> set:
        """The keys that were never asked for."""
        return set(self._record) - self._read

    def finish(self) -> None:
        """Raises an error for a key that was never asked for: it might change the network."""
        for key in sorted(self.unread()):
            raise ConfigurationError(
                f"{self._source}: the key `{one_line(key)}`{self._place()} is unknown; expected "
                f"only {sorted(self._read)}"
            )

    def error(self, key: str, expected: str, value: Any) -> ConfigurationError:
        """The error for a value that makes no sense."""
        return ConfigurationError(
            f"{self._source}: expected `{key}`{self._place()} to be {expected}, but got "
            f"{_shown(value)}"
        )

    def _place(self) -> str:
        return f" of `{one_line(self._name)}`" if self._name else ""


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


def one_line(name: str) -> str:
    """A name from a file, for an error: as JSON if it has line breaks or the like or is long."""
    return name if name.isprintable() and len(name) <= SHOWN else _shown(name)


def _shown(value: Any) -> str:
    """A value as JSON, cut off where nobody would read on."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _kind(value: Any) -> str:
    """JSON's name for the type of a value."""
    kinds: Dict[Type[Any], str] = {list: "a list", str: "a string", bool: "a boolean"}
    return kinds.get(type(value), "a number" if isinstance(value, (int, float)) else "null")
