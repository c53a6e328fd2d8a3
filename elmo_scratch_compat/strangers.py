"""What a config may bring about that came in somebody's archive: it is data."""

import os
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Callable, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional

IMPORTABLE = ("allennlp", "allennlp_models", "elmo_scratch", "torch")
"""The packages whose modules an archive's config may have imported."""

Check = Callable[[Any], None]
"""Looks at a class that a config names, and raises an error if it may not be built."""


class _Rules(NamedTuple):
    """What holds while the config of an archive is read. `named` are names that a user typed."""

    named: FrozenSet[str] = frozenset()
    checks: FrozenSet[Check] = frozenset()
    is_trusted: bool = False


_RULES: ContextVar[Optional[_Rules]] = ContextVar("elmo_scratch_strangers", default=None)


@contextmanager
def config_as_data(named: Iterable[str] = (), check: Optional[Check] = None) -> Iterator[None]:
    """
    In the block nothing is imported because a config names it, unless it is below one of
    `IMPORTABLE`. What is imported already, as by `--include-package`, may be named too, and so may
    `named`, the names that a user has typed. `check` looks at each class before it is built.
    """
    outer = _RULES.get() or _Rules()
    checks = frozenset() if check is None else frozenset({check})
    inner = outer._replace(named=outer.named.union(named), checks=outer.checks | checks)
    token = _RULES.set(inner)
    try:
        yield
    finally:
        _RULES.reset(token)


@contextmanager
def trusted(is_trusted: bool = True) -> Iterator[None]:
    """
    In the block the configs of archives may name any class of an installed package, and these may
    fetch what they are made of, as in a config of one's own.
    """
    if not is_trusted:
        yield
        return
    token = _RULES.set(_Rules(is_trusted=True))
    try:
        yield
    finally:
        _RULES.reset(token)


def is_config_of_others() -> bool:
    """Whether the config that is read now came in an archive that nobody has called trusted."""
    rules = _RULES.get()
    return rules is not None and not rules.is_trusted


def may_name(path: str) -> bool:
    """Whether the config that is read now may name a class by its path, `package.module.Class`."""
    rules = _RULES.get()
    if rules is None or rules.is_trusted or path in rules.named:
        return True
    module, _, name = path.rpartition(".")
    # Not by `hasattr`: a module may import others when it is asked for a name that it lacks.
    if name in getattr(sys.modules.get(module), "__dict__", {}):
        return True
    package, *parts = module.split(".")
    # What begins with a line, such as `__main__`, is no module of classes for others.
    return package in IMPORTABLE and not any(part.startswith("_") for part in parts)


def check_class(found: Any) -> None:
    """Raises the error of a check, if the config that is read now may not build a class."""
    rules = _RULES.get()
    if rules is not None and not rules.is_trusted:
        for check in rules.checks:
            check(found)


def names_of(overrides: Any) -> List[str]:
    """
    The strings in overrides that a user has typed, as Jsonnet or already as maps, keys aside. What
    is no Jsonnet has none: whoever reads it says so.
    """
    if isinstance(overrides, str):
        from allennlp.common.params import parse_overrides

        try:
            overrides = parse_overrides(overrides)
        except (AssertionError, RuntimeError, ValueError, RecursionError):
            return []
    found: List[str] = []
    parts = [overrides]
    for part in parts:  # grows by the members of each
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, (dict, list)):
            parts.extend(part.values() if isinstance(part, dict) else part)
    return found


LONGEST_REASON = 300
"""Characters of another library's reason that a message shows."""


@contextmanager
def told_of(source: Any, expected: str, *, is_named: bool = False) -> Iterator[None]:
    """
    Turns any error that a file from others causes in the block into a `ConfigurationError` of one
    line with the file's name. A damaged or malicious file makes libraries raise nearly every kind
    of error, so no list of kinds is ever whole; the error itself is kept as the cause.

    # Parameters

    source : `Any`
        What the user called the file or folder.
    expected : `str`
        What it ought to be, for errors that no one has foreseen.
    is_named : `bool`, optional (default = `False`)
        Whether each `ConfigurationError` in the block names a file already.

    # Raises

    ConfigurationError
        For any `Exception`. The `FileNotFoundError` of a missing `source` itself stays.
    """
    from allennlp.common.checks import ConfigurationError

    try:
        yield
    except ConfigurationError as error:
        message = " ".join(str(error.message).split())
        if is_named or str(source) in message:
            raise
        raise ConfigurationError(f"{source}: {message}") from error
    except Exception as error:
        if isinstance(error, FileNotFoundError) and not os.path.exists(source):
            raise
        raise ConfigurationError(
            f"{source}: expected {expected}, but it can't be read: {_reason_of(error)}"
        ) from error


def _reason_of(error: Exception) -> str:
    """
    The first sentence of an error's message, or what kind of error it is. PyTorch's second sentence
    advises to run the code in a file.
    """
    kind = type(error).__name__
    lines = str(error).strip().splitlines()
    if not lines:
        return kind
    told = lines[0].partition(". ")[0]
    reason = f"{kind}: {told}" if isinstance(error, LookupError) else told
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON]}…"
