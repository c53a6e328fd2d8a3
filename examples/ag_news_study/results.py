"""What the trainings reached."""

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from bag_of_words import bag_of_words
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support
from tasks import Task

from elmo_scratch.data.ag_news_rows import AgNewsRow

SCORES = ("accuracy", "macro_precision", "macro_recall", "macro_f1")


class Row(NamedTuple):
    """
    One way of representing tokens, over all its seeds.

    # Parameters

    part : `str`
        The part of the study that it belongs to.
    name : `str`
        What it is.
    scores : `Dict[str, List[float]]`
        Each of `SCORES`, a number a seed, of the best epoch on dev.
    seconds : `List[float]`
        What the training of the classifier took, in all its runs.
    shares : `List[List[float]]`
        For each seed how much each layer makes up after the best epoch; empty where nothing is
        mixed or its training doesn't tell.
    classes : `List[str]`
        The names of the classes, in the order of their names.
    confusion : `List[List[int]]`
        Over all seeds: true classes in rows, predicted ones in columns, in the order of `classes`.
    last_accuracies : `Sequence[float]`, optional (default = `()`)
        Accuracies after the last epoch, which dev has not chosen, a number a seed.
    """

    part: str
    name: str
    scores: Dict[str, List[float]]
    seconds: List[float]
    shares: List[List[float]]
    classes: List[str]
    confusion: List[List[int]]
    last_accuracies: Sequence[float] = ()

    def mean(self, score: str) -> float:
        """Of one of `SCORES`, over the seeds."""
        return mean(self.scores[score])

    def deviation(self, score: str) -> float:
        """The standard deviation of one of `SCORES` over the seeds; 0 where there is one."""
        numbers = self.scores[score]
        return stdev(numbers) if len(numbers) > 1 else 0.0


def collected(tasks: Sequence[Task]) -> List[Row]:
    """
    # Parameters

    tasks : `Sequence[Task]`
        Those of the study; what is not done, or belongs to no row, is passed over.

    # Returns

    `List[Row]`
        In the order of the tasks.
    """
    by_row: Dict[Tuple[str, str], List[Task]] = {}
    for task in tasks:
        if task.row and task.is_done:
            by_row.setdefault((task.part, task.row), []).append(task)
    return [_row(part, name, members) for (part, name), members in by_row.items()]


def _row(part: str, name: str, tasks: Sequence[Task]) -> Row:
    """All seeds of one row."""
    runs = [_metrics(task.folder / "run") for task in tasks]
    scores = {score: [run[f"best_validation_{score}"] for run in runs] for score in SCORES}
    # Classes have the order of a vocabulary, which another training need not share.
    classes = sorted(runs[0]["best_validation_confusion_classes"])
    matrices = [
        _ordered(run["best_validation_confusion"], run["best_validation_confusion_classes"])
        for run in runs
    ]
    return Row(
        part,
        name,
        scores,
        [task.seconds() for task in tasks],
        [shares for run in runs if (shares := _shares(run))],
        classes,
        [[sum(cells) for cells in zip(*rows)] for rows in zip(*matrices)],
        last_accuracies=[run["last_accuracy"] for run in runs],
    )


def _ordered(matrix: List[List[int]], classes: Sequence[str]) -> List[List[int]]:
    """A confusion matrix with its classes in the order of their names."""
    order = sorted(range(len(classes)), key=lambda place: classes[place])
    return [[matrix[true][predicted] for predicted in order] for true in order]


def _metrics(run: Path) -> Dict[str, Any]:
    """What a training has measured at its end, and in its best epoch."""
    at_the_end = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    epochs = {int(path.stem.rsplit("_", 1)[1]): path for path in run.glob("metrics_epoch_*.json")}
    best, last = (
        json.loads(epochs[number].read_text(encoding="utf-8"))
        for number in (at_the_end["best_epoch"], max(epochs))
    )
    return {**at_the_end, **best, "last_accuracy": last["validation_accuracy"]}


def _shares(run: Dict[str, Any]) -> List[float]:
    """The shares of the layers, the token layer's first."""
    return [share for name, share in sorted(run.items()) if name.startswith("layer_share_")]


def support_vector_machine(
    train: Sequence[AgNewsRow], dev: Sequence[AgNewsRow], part: str, use_title: bool
) -> Row:
    """
    # Parameters

    train, dev : `Sequence[AgNewsRow]`
        What it learns from, and what it is measured on.
    part : `str`
        The part of the study that it is for.
    use_title : `bool`
        Whether a text's title is read before its description.

    # Returns

    `Row`
        What TF-IDF of words and bigrams and a linear support vector machine reach.
    """
    labels, predicted, seconds = bag_of_words(train, dev, use_title)
    macro = precision_recall_fscore_support(labels, predicted, average="macro", zero_division=0)[:3]
    numbers = [accuracy_score(labels, predicted), *macro]
    classes = sorted(set(labels))
    return Row(
        part,
        "TF-IDF, linear SVM",
        {score: [float(number)] for score, number in zip(SCORES, numbers)},
        [seconds],
        [],
        classes,
        confusion_matrix(labels, predicted, labels=classes).tolist(),
    )
