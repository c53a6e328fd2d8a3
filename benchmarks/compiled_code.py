"""
What the package's compiled code brings: a biLM with it and without it, in one run and by turns:

    python benchmarks/compiled_code.py --model small --dtype bfloat16 --task training

The weights and the sentences are those of embed.py.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from typing import Dict, Iterator, List

import torch
from embed import add_model_and_text, load, new_bilm, read_batches, run_batch

from elmo_scratch.interop.official.writing import write_official_bilm
from elmo_scratch.modules import maximum
from elmo_scratch.modules.lstms.memory_cells import choice
from elmo_scratch.native_library import LIBRARY

KINDS = ("compiled", "plain")


def main() -> None:
    """Prints one line of JSON."""
    args = parse_arguments()
    if LIBRARY is None:
        sys.exit("there is no compiled code here: install elmo_scratch where there is a compiler")
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        write_official_bilm(new_bilm(args.model), folder)
        model = load("elmo_scratch", args, folder)
    batches = read_batches(args)
    times: Dict[str, List[float]] = {kind: [] for kind in KINDS}
    # The first pass of each warms up.
    for number in range(args.repeats + 1):
        for kind in in_turn():
            start = time.perf_counter()
            for ids in batches:
                run_batch(model, ids, args.task)
            if number > 0:
                times[kind].append(time.perf_counter() - start)
    tokens = sum(int((ids > 0).any(dim=-1).sum()) for ids in batches)
    speeds = {kind: tokens / statistics.median(times[kind]) for kind in KINDS}
    found = {
        "model": args.model,
        "dtype": args.dtype,
        "task": args.task,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "tokens_per_s": round(speeds["compiled"], 1),
        "plain_tokens_per_s": round(speeds["plain"], 1),
        "ratio": round(speeds["compiled"] / speeds["plain"], 2),
    }
    print(json.dumps(found))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_and_text(parser)
    parser.add_argument("--repeats", type=int, default=9, help="passes (default: 9)")
    return parser.parse_args()


def in_turn() -> Iterator[str]:
    """Each kind, while the package runs so."""
    functions, cells = maximum.MAXIMA, choice.COMPILED
    yield "compiled"
    maximum.MAXIMA, choice.COMPILED = {}, None
    yield "plain"
    maximum.MAXIMA, choice.COMPILED = functions, cells


if __name__ == "__main__":
    main()
