"""What a training has measured, read from AllenNLP's files of metrics."""

import math
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.files.strict_json import printable, read_json_object
from elmo_scratch.metrics import PrecisionRecallF1

PARTS = ("training", "validation", "best_validation", "test")
"""What metrics are of, by the beginnings of their names in AllenNLP's files."""

MAX_CLASSES = 1001
"""A confusion matrix has at most so many: `num_confusion_words` allows them, and "the rest"."""

MAX_COUNT = 2**53
"""The largest count of a matrix: numbers up to it are exact as float64 too."""

CONFUSION, DURATION = "_confusion", "training_duration"

NAMES = ("classes", "words")
"""What the names of a matrix's rows are kept as, after the name of the matrix."""

TIME = re.compile(r"(?:(\d{1,6}) days?, )?(\d{1,2}):(\d{2}):(\d{2}(?:\.\d{1,6})?)", re.ASCII)
"""How Python writes a time span."""

SCORES = (("precision_", "recall_", "f1_"), ("precision-", "recall-", "f1-measure-"))
"""How the scores of a class begin: those of our classifier, and of AllenNLP's taggers."""


class ClassScores(NamedTuple):
    """
    Scores of one class, each in `[0, 1]`; `num_true`, how often it was true, where that is known.
    """

    name: str
    precision: float
    recall: float
    f1: float
    num_true: Optional[int] = None


class Confusion(NamedTuple):
    """
    Counts of true classes in rows and predicted ones in columns.

    # Parameters

    names : `Tuple[str, ...]`
        Of the classes, in the order of rows and of columns.
    counts : `Tuple[Tuple[int, ...], ...]`
        A row each.
    """

    names: Tuple[str, ...]
    counts: Tuple[Tuple[int, ...], ...]

    def class_scores(self) -> List[ClassScores]:
        """Of each class, in the order of the rows."""
        counts = torch.tensor(self.counts, dtype=torch.long)
        true = counts.sum(dim=1)
        scores = PrecisionRecallF1.from_counts(counts.diagonal(), counts.sum(dim=0), true)
        columns = [column.tolist() for column in (*scores[:3], true)]
        return [ClassScores(*row) for row in zip(self.names, *columns)]

    def most_confused(self, most: int) -> List[Tuple[str, str, int, float]]:
        """
        Returns at most so many true classes, the other classes that were predicted for them, how
        often, and for what share of the true class; the most frequent first.
        """
        pairs = [
            (self.names[row], self.names[column], count, count / sum(counts))
            for row, counts in enumerate(self.counts)
            for column, count in enumerate(counts)
            if row != column and count
        ]
        return sorted(pairs, key=lambda pair: -pair[2])[:most]

    def merged(self, most: int) -> "Confusion":
        """The matrix with at most so many classes: the first ones, and "(the rest)"."""
        if len(self.names) <= most:
            return self
        kept = most - 1
        rows = [(*row[:kept], sum(row[kept:])) for row in self.counts]
        rest = tuple(map(sum, zip(*rows[kept:])))
        return Confusion((*self.names[:kept], "(the rest)"), (*rows[:kept], rest))


class Metrics(NamedTuple):
    """
    What a file of metrics holds.

    # Parameters

    numbers : `Dict[str, float]`
        By AllenNLP's names, such as `validation_loss`. They may be infinite or NaN.
    confusions : `Dict[str, Confusion]`
        By the `PARTS` that they are of.
    seconds : `float`, optional
        How long the training has taken since it began or was recovered.
    """

    numbers: Dict[str, float]
    confusions: Dict[str, Confusion]
    seconds: Optional[float] = None

    def of(self, part: str) -> Dict[str, float]:
        """The numbers of one of `PARTS`, by their names without it."""
        beginning = f"{part}_"
        return {
            name.removeprefix(beginning): number
            for name, number in self.numbers.items()
            if name.startswith(beginning)
        }

    def class_scores(self, part: str) -> List[ClassScores]:
        """The scores of each class in one of `PARTS`, as measured or else of its matrix."""
        numbers, confusion = self.of(part), self.confusions.get(part)
        for begins in SCORES:
            names = [name.removeprefix(begins[0]) for name in numbers if name.startswith(begins[0])]
            whole = [name for name in names if all(begin + name in numbers for begin in begins)]
            if whole:
                true = dict(zip(confusion.names, map(sum, confusion.counts))) if confusion else {}
                scores = [[numbers[begin + name] for begin in begins] for name in whole]
                return [
                    ClassScores(name, precision, recall, f1, true.get(name))
                    for name, (precision, recall, f1) in zip(whole, scores)
                ]
        return confusion.class_scores() if confusion else []


def read_metrics(path: Path, problems: List[str]) -> Metrics:
    """
    Reads a file of metrics. Values that make no sense are left out, with a line in `problems` that
    says so. Raises `ConfigurationError` if the file is no JSON object.
    """
    record = read_json_object(path)
    metrics = Metrics({}, {})
    structured = {DURATION}
    for part in PARTS:
        name = f"{part}{CONFUSION}"
        if name in record:
            names = next((f"{name}_{end}" for end in NAMES if f"{name}_{end}" in record), name)
            structured |= {name, names}
            confusion = confusion_of(record[name], record[names])
            if confusion is not None:
                metrics.confusions[part] = confusion
            else:
                problems.append(
                    f"{path.name}: {name} is left out: expected a square of counts with a name "
                    "for each row"
                )
    for name, value in record.items():
        if name not in structured:
            number = _number(value)
            if number is not None:
                metrics.numbers[printable(name)] = number
            else:
                problems.append(f"{path.name}: {printable(name)} is left out: it is no number")
    return metrics._replace(seconds=_seconds(record.get(DURATION)))


def _number(value: Any) -> Optional[float]:
    if type(value) not in (int, float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _seconds(value: Any) -> Optional[float]:
    found = TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    days, hours, minutes, seconds = found.groups("0")
    return 86400 * int(days) + 3600 * int(hours) + 60 * int(minutes) + float(seconds)


def confusion_of(counts: Any, names: Any) -> Optional[Confusion]:
    """The matrix of what a file has as its counts and names, or `None` if it is none."""
    if not _is_list(names, str) or not _is_list(counts, list) or len(counts) != len(names):
        return None
    if not 0 < len(names) <= MAX_CLASSES:
        return None
    for row in counts:
        if not _is_list(row, int) or len(row) != len(names):
            return None
        if not all(0 <= count < MAX_COUNT for count in row):
            return None
    return Confusion(tuple(map(printable, names)), tuple(map(tuple, counts)))


def _is_list(value: Any, kind: type) -> bool:
    """Whether it is a list of instances of just this type; `True` is no number."""
    return isinstance(value, list) and all(type(one) is kind for one in value)


def total_seconds(durations: Sequence[float]) -> float:
    """
    The time of a whole training from the durations after each of its epochs, which begin anew where
    it was recovered.
    """
    ends = [now for now, then in zip(durations, [*durations[1:], 0.0]) if then < now]
    return sum(ends)
