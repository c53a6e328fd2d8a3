"""What one training of the study reached."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from allennlp.common import FromParams

from elmo_scratch.search.tasks import Task

SCORES = ("accuracy", "macro_precision", "macro_recall", "macro_f1")


@dataclass(frozen=True)
class Training(FromParams):
    """
    # Parameters

    settings : `str`
        `Task.fingerprint` of what it was: the same one means the same training, on any machine.
    seed : `int`
        Of the draws of weights and of the order of texts.
    scores : `Dict[str, float]`
        Each of `SCORES`, of the best epoch on dev.
    seconds : `float`
        What it took, in all its runs.
    classes : `List[str]`
        The names of the classes, in the order of their names.
    confusion : `List[List[int]]`
        True classes in rows, predicted ones in columns, in the order of `classes`.
    shares : `List[float]`
        How much each layer makes up after the best epoch, the token layer's first; empty where
        nothing is mixed or the training doesn't tell.
    last_accuracy : `float`, optional (default = `None`)
        After the last epoch, which dev has not chosen; `None` where there are no epochs.
    """

    settings: str
    seed: int
    scores: Dict[str, float]
    seconds: float
    classes: List[str]
    confusion: List[List[int]]
    shares: List[float]
    last_accuracy: Optional[float] = None


def training_of(task: Task) -> Training:
    """
    # Parameters

    task : `Task`
        A training that is done.

    # Returns

    `Training`
        By the metrics that AllenNLP's trainer wrote.
    """
    run = _metrics(task.folder / "run")
    # Classes have the order of a vocabulary, which another training need not share.
    names: List[str] = run["best_validation_confusion_classes"]
    return Training(
        task.fingerprint(),
        task.settings["config"]["random_seed"],
        {score: run[f"best_validation_{score}"] for score in SCORES},
        task.seconds(),
        sorted(names),
        _ordered(run["best_validation_confusion"], names),
        [share for name, share in sorted(run.items()) if name.startswith("layer_share_")],
        run["last_accuracy"],
    )


def _metrics(run: Path) -> Dict[str, Any]:
    """What a training has measured at its end, and in its best epoch."""
    at_the_end = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    epochs = {int(path.stem.rsplit("_", 1)[1]): path for path in run.glob("metrics_epoch_*.json")}
    best, last = (
        json.loads(epochs[number].read_text(encoding="utf-8"))
        for number in (at_the_end["best_epoch"], max(epochs))
    )
    return {**at_the_end, **best, "last_accuracy": last["validation_accuracy"]}


def _ordered(matrix: List[List[int]], classes: Sequence[str]) -> List[List[int]]:
    """A confusion matrix with its classes in the order of their names."""
    order = sorted(range(len(classes)), key=lambda place: classes[place])
    return [[matrix[true][predicted] for predicted in order] for true in order]
