"""
An export in which one sentence is very long:

    python benchmarks/long_sentence.py --tokens 50000

It exports 200 sentences, one of them of so many tokens, with all layers of a model of the released
small model's size with random weights, and prints how long that took, the peak memory of the
process, and the largest difference between the long sentence's vectors and those that the biLM
computes when it reads it in one go, and between the others' and those of an export without it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List

import numpy
import torch
from embed import ROOT, new_bilm
from memory import peak_memory

from elmo_scratch import LayerFile, batch_to_ids, read_official_bilm, write_official_bilm
from elmo_scratch.export import ExportSettings, InputText, ModelSource, export_layers

SENTENCES, PLACE = 200, 100
"""How many there are, and the number of the long one."""


def main() -> None:
    """Prints one table, and one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=50_000, help="(default: 50,000)")
    parser.add_argument("--state", choices=["carry", "reset"], default="reset")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.folder is not None:
        export(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(args, Path(folder))


def measure(args: argparse.Namespace, folder: Path) -> None:
    """Exports in a process of its own, and compares."""
    torch.manual_seed(0)
    write_official_bilm(new_bilm("small"), folder)
    lines = text_of(args.tokens)
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, __file__, "--folder", str(folder), "--state", args.state]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = {"tokens": args.tokens, "state": args.state, **json.loads(run.stdout.splitlines()[-1])}
    with LayerFile(folder / "layers.hdf5") as layers:
        long, others = layers[PLACE], layers[:PLACE] + layers[PLACE + 1 :]
    if args.state == "reset":
        found["difference_to_one_go"] = difference(long, in_one_go(folder, lines[PLACE].split()))
        source = source_of(folder, args.state)
        alone = source.load()([line.split() for line in lines[:PLACE] + lines[PLACE + 1 :]])
        found["difference_of_others"] = max(map(difference, others, alone))
    for name, value in found.items():
        print(f"{name:>22}  {value}")
    print(json.dumps(found))


def text_of(tokens: int) -> List[str]:
    """Sentences of the fixtures, one of which goes on and on."""
    singles = (ROOT / "fixtures/text/sentences.txt").read_text(encoding="utf-8").splitlines()
    words = " ".join(singles).split()
    long = [words[number * 7 % len(words)] for number in range(tokens)]
    return [*singles[:PLACE], " ".join(long), *singles[PLACE : SENTENCES - 1]]


def source_of(folder: Path, state: str) -> ModelSource:
    """The model in a folder."""
    return ModelSource(str(folder / "options.json"), str(folder / "weights.hdf5"), state)


def export(args: argparse.Namespace) -> None:
    """Exports the text of a folder, and prints the seconds and the peak memory that it took."""
    layers = source_of(args.folder, args.state).load()
    before = peak_memory()
    start = time.perf_counter()
    text = InputText("text", args.folder / "text.txt")
    export_layers(text, args.folder / "layers.hdf5", layers, ExportSettings())
    seconds = time.perf_counter() - start
    found = {"seconds": round(seconds, 1), "tokens_per_s": round(text.num_tokens / seconds, 1)}
    print(json.dumps({**found, "mib_before": round(before), "peak_mib": round(peak_memory())}))


def in_one_go(folder: Path, words: List[str]) -> numpy.ndarray:
    """The layers of a sentence that isn't divided."""
    files = (folder / "options.json", folder / "weights.hdf5")
    bilm = read_official_bilm(*files, state="reset").requires_grad_(False)
    ids = batch_to_ids([words])
    with torch.inference_mode():
        layers = bilm(ids, (ids > 0).any(dim=-1)).layers
    return layers[:, 0, 1:-1].numpy()


def difference(one: numpy.ndarray, other: numpy.ndarray) -> float:
    """The largest between any two numbers."""
    return float(numpy.abs(one - other).max())


if __name__ == "__main__":
    main()
