"""All numbers of a study in a file, and a file of them from another folder or machine."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Sequence, Type, TypeVar

from allennlp.common import FromParams, Params
from allennlp.common.checks import ConfigurationError
from results import Row
from training import SCORES, Training

from elmo_scratch.files.atomic import atomic_write

NAMES = {
    "study": "study.json",
    "cross-validation": "folds.json",
    "learning curve": "learning_curve.json",
}
"""The files of numbers, by what writes them."""


def write_results(rows: Sequence[Row], path: Path) -> None:
    """All numbers of all rows, as JSON, with means and standard deviations."""
    described = [
        {
            "part": row.part,
            "name": row.name,
            "means": {score: row.mean(score) for score in SCORES},
            "deviations": {score: row.deviation(score) for score in SCORES},
            "trainings": [asdict(training) for training in row.trainings],
        }
        for row in rows
    ]
    with atomic_write(path) as part:
        part.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")


def read_trainings(path: Path) -> Dict[str, Training]:
    """
    # Parameters

    path : `Path`
        What `write_results` has written, there or elsewhere.

    # Returns

    `Dict[str, Training]`
        All trainings of seeds in it, by their `settings`.

    # Raises

    ConfigurationError
        If it can't be read, or is something else.
    """
    trainings = read_numbers(path, _described, Training, "study")
    if any(set(training.scores) != set(SCORES) for training in trainings):
        raise ConfigurationError(
            f"{path}: expected the `study.json` of a study, but it is none (a training has not "
            f"just the scores {', '.join(SCORES)})"
        )
    return {training.settings: training for training in trainings if training.settings}


Numbers = TypeVar("Numbers", bound=FromParams)


def read_numbers(
    path: Path,
    find: Callable[[Any], Iterable[Dict[str, Any]]],
    kind: Type[Numbers],
    made_by: str,
) -> List[Numbers]:
    """
    # Parameters

    path : `Path`
        A file of JSON.
    find : `Callable[[Any], Iterable[Dict[str, Any]]]`
        Finds the objects in what it holds.
    kind : `Type[Numbers]`
        What each of them describes.
    made_by : `str`
        What writes such files: for the error.

    # Returns

    `List[Numbers]`
        What the objects describe, in their order.

    # Raises

    ConfigurationError
        If it can't be read, or is something else.
    """
    try:
        numbers = json.loads(path.read_text(encoding="utf-8"))
        return [kind.from_params(Params(one)) for one in find(numbers)]
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
    except (ConfigurationError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: expected the `{NAMES[made_by]}` of a {made_by}, but it is none ({error})"
        ) from None


def _described(rows: Any) -> List[Dict[str, Any]]:
    """The trainings of all rows, as they are written."""
    described = [training for row in rows for training in row["trainings"]]
    if not all(isinstance(training, dict) for training in described):
        raise TypeError("a training is no object")
    return described
