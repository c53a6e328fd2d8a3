"""What a person did wrong, told in one line, where AllenNLP or a library raised an error."""

import re
from argparse import Namespace
from difflib import get_close_matches
from typing import Optional

from allennlp.common.checks import ConfigurationError

MORE = "; --debug shows where"


def mistake_of(error: Exception, args: Namespace) -> Optional[str]:
    """
    Returns the line for an error in `allennlp train`, `evaluate` or `predict`, given the command's
    arguments; `None` if it is the mistake of a program, whose traceback is wanted.
    """
    message = " ".join(str(error).split())
    config: str = args.param_path if "param_path" in args else args.archive_file
    if isinstance(error, ConfigurationError):
        return _of_unknown_name(" ".join(str(error.message).split()))
    if isinstance(error, OSError):
        missing = re.fullmatch(r"file (.+) not found", message)
        if missing:
            return f"{missing[1]}: there is no such file"
        return f"{error.filename}: {error.strerror}" if error.filename else message
    if isinstance(error, NotImplementedError):
        return (
            f"{config}: expected a model that answers JSON lines. Name a --predictor that suits "
            "it, or predict by --use-dataset-reader; `allennlp elmo` writes the vectors of a biLM."
        )
    if isinstance(error, TypeError) and re.fullmatch(r"Expected \w+ to be an? .+", message):
        return f"{config}: {message[0].lower()}{message[1:]}"
    if isinstance(error, (RuntimeError, ValueError)):
        if message.startswith("overrides"):
            return message
        return _of_jsonnet(message, config, args) or f"{message.rstrip('.')}{MORE}"
    return None


def _of_unknown_name(message: str) -> str:
    """AllenNLP lists all names that it knows in place of one that it doesn't know."""
    listed = re.match(r"(\S+) not in acceptable choices for (\S+): \[(.*?)\]\. ", message)
    if listed is None:
        return message
    known = re.findall(r"'([^']+)'", listed[3])
    nearest = get_close_matches(listed[1], known, n=1)
    told = f"Did you mean {nearest[0]!r}?" if nearest else f"Expected one of {', '.join(known)}."
    return (
        f"{listed[2]}: there is no {listed[1]!r}. {told} Classes of your own need --include-package"
    )


def _of_jsonnet(message: str, config: str, args: Namespace) -> Optional[str]:
    """The line for an error in a config that is no valid program, or in overrides."""
    variable = re.search(r"undefined external variable: (\w+)", message)
    if variable is not None:
        return (
            f"{config}: the environment variable {variable[1]} is not set, which the config asks "
            f"for; its head says what for: export {variable[1]}=..."
        )
    place = re.match(r"(?:STATIC|RUNTIME) ERROR: (.*)", message)
    if place is not None:
        # Overrides are no file: their place begins with the number of a line.
        if re.match(r"\d+:\d+", place[1]):
            return f"--overrides: expected JSON, but got {args.overrides} ({place[1]})"
        return f"{config}: expected a config in Jsonnet, but {place[1]}"
    return None
