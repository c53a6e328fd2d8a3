"""
Stands in for `allennlp` in the tests of searches: it trains nothing, and is done at once. The
accuracy that it reaches is the setting `x` of the config; below 0 it fails. While there is a file
`wait` beside the config, trainings with an `x` below the number in it don't get past an epoch; all
leave a checkpoint for each, from which `--recover` goes on.
Where the setting `leaves_result` is false it writes no `metrics.json`.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import List

STUB = (sys.executable, __file__)


def main(words: List[str]) -> None:
    command, config, _, folder, _, overrides = words[:6]
    settings = {**json.loads(Path(config).read_text(encoding="utf-8")), **json.loads(overrides)}
    assert command == "train"
    recovers = "--recover" in words
    Path(folder).mkdir(exist_ok=recovers)
    seen = {"words": words[6:], "pid": os.getpid()}
    (Path(folder) / "seen.json").write_text(json.dumps(seen), encoding="utf-8")
    if settings["x"] < 0:
        print("first line\n\nx is below 0")
        sys.exit(1)
    metrics = {}
    first = len(list(Path(folder).glob("model_state_*.th"))) if recovers else 0
    for epoch in range(first, settings["epochs"]):
        reached = settings["x"] * (epoch + 1) / settings["epochs"]
        metrics = {"best_validation_accuracy": reached, "best_epoch": epoch, "settings": settings}
        file = Path(folder) / f"metrics_epoch_{epoch}.json"
        file.write_text(json.dumps(metrics), encoding="utf-8")
        (Path(folder) / f"model_state_e{epoch + 1}_b0.th").touch()
        wait = Path(config).with_name("wait")
        while wait.exists() and settings["x"] < float(wait.read_text(encoding="utf-8")):
            time.sleep(0.05)
    if settings.get("leaves_result", True):
        (Path(folder) / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
