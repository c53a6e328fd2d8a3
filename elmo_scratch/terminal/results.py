"""The metrics of a training or an evaluation, told in a few lines of at most 78 characters."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from elmo_scratch.terminal.sparkline import sparkline

WIDTH = 78
"""Commands indent the lines by two more, in a terminal of 80 columns."""

MOST_CLASSES = 12
"""The most classes that are told one by one."""

MOST_NUMBERS = 10
"""The most metrics of a model that has neither perplexities nor classes."""

NAMES_WIDTH, SCORE_WIDTH = 14, 8

EPOCH_FILE = re.compile(r"metrics_epoch_(\d+)\.json")


class Course(NamedTuple):
    """
    The metrics of a training. `best` are those of the best epoch, on the validation data if there
    are any; `epochs` are those of all epochs, in order, on the same data; `data` is their name.
    """

    best: Dict[str, Any]
    epochs: List[Dict[str, Any]]
    best_epoch: int
    data: str


def course_of_training(folder: Path) -> Course:
    """
    Reads the metrics that a training has left in its folder. Raises `OSError` or `ValueError` if
    they are missing or damaged.
    """
    last = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    names = [(EPOCH_FILE.fullmatch(path.name), path) for path in folder.iterdir()]
    files = sorted((int(name[1]), path) for name, path in names if name)
    metrics = [json.loads(path.read_text(encoding="utf-8")) for _, path in files]
    is_validated = any(name.startswith(("validation_", "best_validation_")) for name in last)
    data = "validation" if is_validated else "training"
    epochs = [_beginning_with(f"{data}_", of_epoch) for of_epoch in metrics]
    number = last.get("best_epoch")
    best_epoch = len(epochs) - 1 if number is None else int(number)
    best = _beginning_with(f"best_{data}_", last) or _beginning_with(f"{data}_", last)
    if not best and epochs:
        # A training that was recovered after its last epoch has no numbers of its own.
        best = epochs[min(best_epoch, len(epochs) - 1)]
    return Course(best, epochs, best_epoch, data)


def _beginning_with(start: str, metrics: Mapping[str, Any]) -> Dict[str, Any]:
    return {name[len(start) :]: value for name, value in metrics.items() if name.startswith(start)}


def result_lines(metrics: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]] = ()) -> List[str]:
    """
    # Parameters

    metrics : `Mapping[str, Any]`
        The metrics of a model on one set of data, as `Model.get_metrics` names them.
    epochs : `Sequence[Mapping[str, Any]]`, optional (default = none)
        The same metrics after each epoch, for the course of the first one that is told.

    # Returns

    `List[str]`
        Of a language model its perplexities; of a classifier its accuracy, and for each class
        precision, recall, F1 and what its texts were taken for; of other models their numbers.
    """
    if "perplexity" in metrics:
        return _lines_of_language_model(metrics, epochs)
    if "accuracy" in metrics:
        return [
            f"accuracy {metrics['accuracy']:.1%}{_course('accuracy', epochs)}",
            *_lines_of_classes(metrics),
        ]
    numbers = {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
    longest = max(map(len, numbers), default=0)
    lines = [f"{name:{longest}}  {value:.4g}" for name, value in numbers.items()]
    if len(lines) > MOST_NUMBERS:
        lines[MOST_NUMBERS:] = [f"and {len(lines) - MOST_NUMBERS} more"]
    return lines


def _lines_of_language_model(
    metrics: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]]
) -> List[str]:
    directions = [
        f"{direction.replace('_', ' ')} {metrics[name]:.1f}"
        for direction in ("left_to_right", "right_to_left")
        if (name := f"perplexity_{direction}") in metrics
    ]
    hits = [
        f"{told} {metrics[name]:.1%}"
        for name, told in (
            ("top_1_accuracy", "right word guessed"),
            ("top_5_accuracy", "among five guesses"),
        )
        if name in metrics
    ]
    course = _course("perplexity", epochs, is_logarithmic=True)
    lines = [f"perplexity {metrics['perplexity']:.1f}{course}"]
    return lines + [f"  {', '.join(found)}" for found in (directions, hits) if found]


def _course(name: str, epochs: Sequence[Mapping[str, Any]], is_logarithmic: bool = False) -> str:
    """A sparkline of a metric, if there are several epochs with it."""
    values = [float(metrics[name]) for metrics in epochs if name in metrics]
    if len(values) < 2:
        return ""
    curve = sparkline(values, is_logarithmic=is_logarithmic)
    return f"  {curve}  over {len(values)} epochs"


def _lines_of_classes(metrics: Mapping[str, Any]) -> List[str]:
    """A table with a row for each class, and what its texts were taken for where that fits."""
    names: Sequence[str] = metrics.get("confusion_classes", [])
    if not 0 < len(names) <= MOST_CLASSES:
        return []
    confusion: Sequence[Sequence[int]] = metrics["confusion"]
    labels = [_shortened(name, NAMES_WIDTH) for name in names]
    heads = "".join(f"{head:>{SCORE_WIDTH}}" for head in ("precis.", "recall", "F1"))
    room = (WIDTH - NAMES_WIDTH - len(heads) - 2) // len(names)
    has_counts = room >= 1 + max(len(str(count)) for row in confusion for count in row)
    has_counts = has_counts and room >= 4
    room = min(room, 1 + max(map(len, labels)))
    counted = "".join(f"{_shortened(name, room - 1):>{room}}" for name in names)
    lines = [f"{'':{NAMES_WIDTH}}{heads}" + (f"  {counted}" if has_counts else "")]
    if has_counts:
        lines.insert(0, f"{'':{NAMES_WIDTH + len(heads)}}  taken for")
    for name, label, row in zip(names, labels, confusion, strict=True):
        scores = _scores(metrics, [f"{kind}_{name}" for kind in ("precision", "recall", "f1")])
        counts = "".join(f"{count:>{room}}" for count in row)
        lines.append(f"{label:{NAMES_WIDTH}}{scores}" + (f"  {counts}" if has_counts else ""))
    macro = [f"macro_{kind}" for kind in ("precision", "recall", "f1")]
    lines.append(f"{'mean':{NAMES_WIDTH}}{_scores(metrics, macro)}")
    return lines


def _scores(metrics: Mapping[str, Any], names: Sequence[str]) -> str:
    return "".join(
        f"{metrics[name]:>{SCORE_WIDTH}.3f}" if name in metrics else " " * SCORE_WIDTH
        for name in names
    )


def _shortened(name: str, length: int) -> str:
    """A class's name on one line; names come from data and may hold anything."""
    name = "".join(letter if letter.isprintable() else " " for letter in name)
    return name if len(name) <= length else f"{name[: length - 1]}…"
