"""Numbers that are known only when the metrics of an epoch have been written."""

import json
from pathlib import Path
from typing import Any, Dict

from elmo_scratch.files.atomic import whole_file


def add_to_epoch_metrics(
    folder: str, metrics: Dict[str, Any], epoch: int, numbers: Dict[str, float]
) -> None:
    """
    Adds numbers to an epoch's metrics, and writes its `metrics_epoch_*.json` anew. To be called in
    `TrainerCallback.on_epoch` of the first worker.

    # Parameters

    folder : `str`
        Where the trainer writes to.
    metrics : `Dict[str, Any]`
        What the callback was given; all callbacks of the training share it.
    epoch : `int`
        The number of the epoch.
    numbers : `Dict[str, float]`
        By name.
    """
    metrics.update(numbers)
    if folder:
        with whole_file(Path(folder) / f"metrics_epoch_{epoch}.json") as part:
            part.write_text(json.dumps(metrics, indent=2), encoding="utf-8")
