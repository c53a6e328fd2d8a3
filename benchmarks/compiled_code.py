"""
What the package's compiled code brings: a biLM with it and without it, in one run and by turns:

    python benchmarks/compiled_code.py --model small --dtype bfloat16 --task training

The weights and the sentences are those of embed.py.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Dict, List, Tuple

import torch
from embed import add_model_and_text, load, new_bilm, read_batches, run_batch

from elmo_scratch.interop.official import write_official_bilm
from elmo_scratch.kernels.library import LIBRARY, SWITCH

KINDS = ("compiled", "plain")


def main() -> None:
    """Prints one line of JSON."""
    args = parse_arguments()
    if LIBRARY is None:
        sys.exit("there is no compiled code here: install elmo_scratch where there is a compiler")
    times: Dict[str, List[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        write_official_bilm(new_bilm(args.model), folder)
        runners = {kind: start(kind, args, folder) for kind in KINDS}
        # The first pass of each warms up.
        for number in range(args.repeats + 1):
            for kind, runner in runners.items():
                runner.send(True)
                seconds, tokens = runner.recv()
                if number > 0:
                    times[kind].append(seconds)
        for runner in runners.values():
            runner.send(False)
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


def start(kind: str, args: argparse.Namespace, folder: str) -> Connection:
    """A process of a kind, which passes through the text each time that it is sent a truth."""
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=run, args=(theirs, args, folder), daemon=True)
    before = os.environ.get(SWITCH)
    # With fewer instructions, if the environment says so.
    as_asked = "1" if before in (None, "0") else before
    os.environ[SWITCH] = as_asked if kind == "compiled" else "0"
    process.start()
    if before is None:
        del os.environ[SWITCH]
    else:
        os.environ[SWITCH] = before
    return ours


def run(asked: Connection, args: argparse.Namespace, folder: str) -> None:
    """Answers with the seconds of a pass and its tokens."""
    model, batches = load("elmo_scratch", args, folder), read_batches(args)
    tokens = sum(int((ids > 0).any(dim=-1).sum()) for ids in batches)
    while asked.recv():
        # As in embed.py, for words are kept from pass to pass.
        model.reset_states()
        model.bilm.token_encoder.forget_words()
        begin = time.perf_counter()
        for ids in batches:
            run_batch(model, ids, args.task)
        answer: Tuple[float, int] = (time.perf_counter() - begin, tokens)
        asked.send(answer)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_and_text(parser)
    parser.add_argument("--repeats", type=int, default=9, help="passes (default: 9)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
