import json
from pathlib import Path
from typing import Any, Dict

from elmo_scratch.training.callbacks import add_to_epoch_metrics


def test_numbers_come_to_the_metrics_and_to_their_file(tmp_path: Path) -> None:
    file = tmp_path / "metrics_epoch_3.json"
    file.write_text("{}", encoding="utf-8")
    metrics: Dict[str, Any] = {"epoch": 3}
    add_to_epoch_metrics(str(tmp_path), metrics, 3, {"training_norm": 0.5})
    assert metrics == {"epoch": 3, "training_norm": 0.5}
    assert json.loads(file.read_text(encoding="utf-8")) == metrics


def test_without_a_folder_nothing_is_written() -> None:
    metrics: Dict[str, Any] = {}
    add_to_epoch_metrics("", metrics, 3, {"training_norm": 0.5})
    assert metrics == {"training_norm": 0.5}
