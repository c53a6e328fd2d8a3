import json
from pathlib import Path
from types import ModuleType
from typing import Any, Dict


def test_a_training_that_was_stopped_at_its_end_has_a_row(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    task = modules["tasks"].Task("a", "mixes", "words, top", [], {}, tmp_path, [], None)
    assert modules["results"].collected([task]) == []
    (tmp_path / "done").touch()
    run = tmp_path / "run"
    run.mkdir()
    best = {f"best_validation_{score}": 0.6 for score in modules["results"].SCORES}
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
    (row,) = modules["results"].collected([task])
    assert (row.scores["accuracy"], row.last_accuracies) == ([0.6], [0.5])
    assert row.shares == [[0.125, 0.875]]
    assert (row.classes, row.confusion) == (["Sports", "World"], [[4, 3], [2, 1]])
