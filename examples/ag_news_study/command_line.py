"""What the study's programs share of their command lines."""

import argparse
import json
import re
from pathlib import Path
from typing import Dict

from elmo_scratch.search.tasks import Undone


def json_object(text: str) -> Dict[str, object]:
    """The type of an argument: a JSON object."""
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, but got {text}")
    return settings


def pattern(text: str) -> str:
    """The type of an argument: a regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text


def failures(undone: Undone, num_tasks: int, folder: Path) -> str:
    """What failed of so many tasks, and what that costs."""
    told = f"{len(undone.failed)} of {num_tasks} failed: {', '.join(undone.failed)}"
    if undone.lost:
        told += f"; {len(undone.lost)} others need them"
    return f"{told}. Their logs are in {folder}; the same command tries them again"
