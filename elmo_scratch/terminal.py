"""
What a command tells a person: sparklines, results as a few lines, and how it closes; and what it
leaves out, messages that nobody asked for.
"""

import json
import logging
import math
import re
import shlex
import unicodedata
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence


def printable(text: str) -> str:
    """The text without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def text_width(text: str) -> int:
    """How many columns a terminal gives to a text."""
    return sum(
        0 if unicodedata.combining(letter) else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def clipped(text: str, columns: int) -> str:
    """The beginning of a text that has room in so many columns."""
    width = 0
    for place, letter in enumerate(text):
        width += text_width(letter)
        if width > columns:
            return text[:place]
    return text


BLOCKS = "▁▂▃▄▅▆▇█"
NO_NUMBER = "×"


def sparkline(values: Sequence[float], *, width: int = 32, is_logarithmic: bool = False) -> str:
    """
    # Parameters

    values : `Sequence[float]`
        The points of the curve.
    width : `int`, optional (default = `32`)
        The most characters. Of more values the last of each stretch is shown.
    is_logarithmic : `bool`, optional (default = `False`)
        Heights are those of the logarithms: for perplexities, which fall by factors.

    # Returns

    `str`
        One character a value, the lowest value `▁` and the highest `█`; `×` where there is no
        finite value, or no logarithm.
    """
    if len(values) > width:
        values = [values[(place + 1) * len(values) // width - 1] for place in range(width)]
    heights = [_height(value, is_logarithmic) for value in values]
    known = [height for height in heights if math.isfinite(height)]
    if not known:
        return NO_NUMBER * len(heights)
    low, high = min(known), max(known)
    top = len(BLOCKS) - 1
    return "".join(
        BLOCKS[round((height - low) / (high - low) * top) if high > low else 0]
        if math.isfinite(height)
        else NO_NUMBER
        for height in heights
    )


def _height(value: float, is_logarithmic: bool) -> float:
    """NaN where there is none."""
    if not is_logarithmic:
        return float(value)
    return math.log(value) if value > 0.0 else math.nan


WIDTH = 78
"""Commands indent the lines by two more, in a terminal of 80 columns."""

MOST_CLASSES = 12
"""The most classes that are told one by one."""

MOST_NUMBERS = 10
"""The most metrics of a model that has neither perplexities nor classes."""

NAMES_WIDTH, SCORE_WIDTH = 14, 8

OF_THE_RUN = re.compile(r"(worker|gpu)_\d+_memory_MB|tokens_per_second")
"""Metrics of a training that say nothing of its model."""

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


def validation_metric(config: Mapping[str, Any]) -> str:
    """
    The metric by which the training of a config chooses its best epoch, of several the first, as
    AllenNLP writes it: `"+accuracy"` if higher is better, `"-loss"`, the default, if lower is.
    """
    trainer = config.get("trainer")
    named = trainer.get("validation_metric") if isinstance(trainer, dict) else None
    first = named[0] if isinstance(named, list) and named else named
    return first if isinstance(first, str) and first.startswith(("+", "-")) else "-loss"


def result_lines(
    metrics: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]] = (), chosen: str = ""
) -> List[str]:
    """
    # Parameters

    metrics : `Mapping[str, Any]`
        The metrics of a model on one set of data, as `Model.get_metrics` names them.
    epochs : `Sequence[Mapping[str, Any]]`, optional (default = none)
        The same metrics after each epoch, for the course of the first one that is told.
    chosen : `str`, optional (default = none)
        The metric by which the best epoch was chosen. Models without perplexities or a confusion
        matrix of classes tell it first, unless it is the loss, which says little to people.

    # Returns

    `List[str]`
        Of a language model its perplexities; of a classifier its accuracy, and for each class
        precision, recall, F1 and what its texts were taken for; of other models their numbers.
    """
    if "perplexity" in metrics:
        return _lines_of_language_model(metrics, epochs)
    if "accuracy" in metrics and "confusion_classes" in metrics:
        return [
            f"accuracy {metrics['accuracy']:.1%}{_course('accuracy', epochs)}",
            *_lines_of_classes(metrics),
        ]
    numbers = {
        name: value
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not OF_THE_RUN.fullmatch(name)
    }
    names = sorted(numbers, key=lambda name: name != chosen or name == "loss")
    longest = max(map(len, numbers), default=0)
    shown = {
        name: f"{number:.1%}" if name.startswith("accuracy") else f"{number:.4g}"
        for name, number in numbers.items()
    }
    lines = [f"{name:{longest}}  {shown[name]}" for name in names]
    if lines:
        lines[0] += _course(names[0], epochs)
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


CHECKPOINT = re.compile(r"training_state_e(\d+)_b(\d+)\.th")
"""Matches the names of AllenNLP's files with the state of a training."""


def last_checkpoint(folder: Path) -> str:
    """
    What the last checkpoint in the output folder of a training holds, in words: `"1 epoch and 50
    batches"`; `""` if there is none.
    """
    names = (
        [CHECKPOINT.fullmatch(path.name) for path in folder.iterdir()] if folder.is_dir() else []
    )
    numbers = sorted((int(name[1]), int(name[2])) for name in names if name)
    if not numbers:
        return ""
    epochs, batches = numbers[-1]
    told = f"{epochs} epoch{'' if epochs == 1 else 's'}"
    return f"{told} and {batches} batches" if batches else told


def way_on(folder: Path, config_file: object, options: Sequence[str] = ()) -> str:
    """
    # Parameters

    folder : `Path`
        The output folder of a training that is not finished.
    config_file : `object`
        The path of its config.
    options : `Sequence[str]`, optional (default = none)
        The other words of its command line.

    # Returns

    `str`
        The command that goes on from the last checkpoint or, if there is none, begins anew.
    """
    how = "--recover" if last_checkpoint(folder) else "--force"
    return shlex.join(["allennlp", "train", str(config_file), "-s", str(folder), *options, how])


PLACES_WIDTH = 13


def closing_lines(
    reached: Sequence[str], places: Dict[str, object], steps: Sequence[str] = ()
) -> List[str]:
    """
    # Parameters

    reached : `Sequence[str]`
        What was reached, line by line.
    places : `Dict[str, object]`
        Where it lies: what it is, in at most 12 characters, to its path.
    steps : `Sequence[str]`, optional (default = none)
        Commands that go on with it, as one would type them in a shell.

    # Returns

    `List[str]`
        The lines, the first one empty.
    """
    lines = ["", *reached]
    if places or steps:
        lines.append("")
    lines += [f"{name:{PLACES_WIDTH}}{place}" for name, place in places.items()]
    names = ["next", *[""] * len(steps)]
    return lines + [f"{name:{PLACES_WIDTH}}{step}" for name, step in zip(names, steps)]


def duration(seconds: float) -> str:
    """Returns `"4.1 s"`, or from a minute on `"1:02:03"`."""
    return f"{seconds:.1f} s" if seconds < 59.95 else str(timedelta(seconds=round(seconds)))


def counted(number: int, name: str) -> str:
    """Returns `"1 token"` or `"2,048 tokens"`."""
    return f"{number:,} {name}{'' if number == 1 else 's'}"


@contextmanager
def without_information(*names: str) -> Iterator[None]:
    """Keeps messages below a warning of the loggers of these names from everybody in the block."""
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(_is_warning)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_warning)


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING
