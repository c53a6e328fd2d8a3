"""Output folders of trainings, made by hand."""

import json
import socket
from pathlib import Path
from typing import Any, Dict, Optional, Sequence

CLASSES = ["cats", "dogs"]

RECORD = "2026-11-28 12:00:00,123 - {} - {}\n"


def classifier_metrics(
    accuracies: Sequence[float], more: Optional[Dict[str, Any]] = None
) -> Dict[str, Any]:
    """What a classifier has measured on its validation data after epochs with these accuracies."""
    best = max(accuracies)
    measured: Dict[str, Any] = {
        "best_epoch": list(accuracies).index(best),
        "training_duration": f"0:00:{10 * len(accuracies):02d}.5",
        "epoch": len(accuracies) - 1,
        "training_loss": 0.7,
        "validation_accuracy": accuracies[-1],
        "validation_loss": 0.9,
        "best_validation_accuracy": best,
        "best_validation_loss": 0.8,
        "best_validation_confusion": [[3, 1], [2, 5]],
        "best_validation_confusion_classes": CLASSES,
    }
    return {**measured, **(more or {})}


def write_run(
    folder: Path,
    accuracies: Sequence[float] = (0.5, 0.75),
    is_over: bool = True,
    config: Any = None,
    seed: int = 1,
    more: Optional[Dict[str, Any]] = None,
) -> Path:
    """A classifier's training; `more` are metrics of all epochs. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "model": {"type": "elmo_scratch_classifier"},
        "train_data_path": "train.csv",
        "validation_data_path": "dev.csv",
        "trainer": {"num_epochs": 2, "validation_metric": "+accuracy"},
        "random_seed": seed,
        "numpy_seed": seed,
        "pytorch_seed": seed,
        **(config or {}),
    }
    write_json(folder / "config.json", settings)
    write_json(folder / "meta.json", {"version": "2.10.1"})
    for epoch in range(len(accuracies)):
        metrics = classifier_metrics(accuracies[: epoch + 1], more)
        write_json(folder / f"metrics_epoch_{epoch}.json", metrics)
    if is_over:
        write_json(folder / "metrics.json", classifier_metrics(accuracies, more))
    return folder


def write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def write_crash(folder: Path, error: str) -> None:
    """The end of the log of a training that an error has ended."""
    log = RECORD.format("INFO", "allennlp - Training")
    log += RECORD.format("CRITICAL", "root - Uncaught exception")
    log += f'Traceback (most recent call last):\n  File "train.py", line 3\n    fail()\n{error}\n'
    (folder / "out.log").write_text(log, encoding="utf-8")


def write_lock(folder: Path, host: str = socket.gethostname()) -> None:
    """What the lock of a training that is over says."""
    (folder / "training.lock").write_text(f"process 17 on {host}\n", encoding="utf-8")
