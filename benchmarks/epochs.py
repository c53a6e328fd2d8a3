"""
What an epoch of a task costs over a frozen biLM that reads every text anew, and over one whose
layers are kept:

    python benchmarks/epochs.py train.csv dev.csv --bilm model.tar.gz

`allennlp train` with training_config/ag_news/elmo_trainable.jsonnet, once each without
`keep_layers`, with `"memory"` and with `"file"`, and once more with the same file.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Dict, List

CONFIG = Path(__file__).parent.parent / "training_config" / "ag_news" / "elmo_trainable.jsonnet"
KEY = "model.text_field_embedder.token_embedders.elmo.keep_layers"
DURATION = re.compile(r"Epoch duration: (\d+):(\d+):(\d+\.?\d*)")


def main() -> None:
    """Prints a table in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train", type=Path, help="an AG News file to train on")
    parser.add_argument("dev", type=Path, help="an AG News file to measure on")
    parser.add_argument("--bilm", required=True, help="the archive of a biLM of words")
    parser.add_argument("--rows", type=int, help="of the first file, at most (default: all)")
    parser.add_argument("--epochs", type=int, default=3, help="(default: 3)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train = folder / "train.csv"
        rows = args.train.read_text(encoding="utf-8").splitlines(keepends=True)
        train.write_text("".join(rows[: args.rows]), encoding="utf-8")
        in_file = {"type": "file", "path": str(folder / "layers.lmdb")}
        ways: Dict[str, object] = {
            "none": None,
            '"memory"': "memory",
            '"file"': in_file,
            '"file", the second training': in_file,
        }
        print(f"| `keep_layers` | {' | '.join(f'epoch {n}' for n in range(args.epochs))} |")
        print(f"|---|{'---:|' * args.epochs}")
        for number, (way, setting) in enumerate(ways.items()):
            variables = {
                "AG_NEWS_TRAIN": str(train),
                "AG_NEWS_DEV": str(args.dev),
                "BILM_ARCHIVE": args.bilm,
            }
            overrides = {KEY: setting, "trainer.num_epochs": args.epochs, "trainer.patience": None}
            seconds = epoch_seconds(folder / str(number), variables, overrides)
            print(f"| {way} | {' | '.join(f'{second:.1f} s' for second in seconds)} |", flush=True)


def epoch_seconds(
    folder: Path, variables: Dict[str, str], overrides: Dict[str, object]
) -> List[float]:
    """What each epoch of a training takes, with its validation."""
    command = [sys.executable, "-m", "allennlp", "train", str(CONFIG), "-s", str(folder)]
    command += ["--overrides", json.dumps(overrides)]
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    log = (folder / "out.log").read_text(encoding="utf-8")
    return [
        timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds)).total_seconds()
        for hours, minutes, seconds in DURATION.findall(log)
    ]


if __name__ == "__main__":
    main()
