import json
from pathlib import Path
from types import ModuleType
from typing import Any, Dict

from elmo_scratch.search.tasks import Task


def test_a_training_is_known_by_its_best_and_its_last_epoch(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    settings = {"config": {"random_seed": 3}}
    task = Task("a", "mixes", "words, top", [], {}, tmp_path, [], settings)
    task.add_seconds(7.0)
    run = tmp_path / "run"
    run.mkdir()
    best = {f"best_validation_{score}": 0.6 for score in modules["training"].SCORES}
    ending: Dict[str, Any] = {
        **best,
        "best_epoch": 2,
        "best_validation_confusion": [[1, 2], [3, 4]],
        "best_validation_confusion_classes": ["World", "Sports"],
    }
    (run / "metrics.json").write_text(json.dumps(ending))
    for epoch in (2, 10):
        shares = {"layer_share_0": 0.25 / epoch, "layer_share_1": 1 - 0.25 / epoch}
        measured = {**shares, "validation_accuracy": epoch / 20}
        (run / f"metrics_epoch_{epoch}.json").write_text(json.dumps(measured))
    training = modules["training"].training_of(task)
    assert (training.settings, training.seed) == (task.fingerprint(), 3)
    assert (training.scores["accuracy"], training.last_accuracy) == (0.6, 0.5)
    assert training.shares == [0.125, 0.875]
    assert (training.classes, training.confusion) == (["Sports", "World"], [[4, 3], [2, 1]])
    assert training.seconds == 7.0
