"""
Counts the faults that each writer survives, and prints what it doesn't. From the root of the
checkout:

    python -m tests.faults [--most N] [WORD …]

Without words it takes all writers, else those with one of the words in their names.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

import elmo_scratch.registered  # noqa: F401  (registers what the configs name)
from tests.faults.campaign import Campaign
from tests.faults.writers import WRITERS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--most", type=int, help="faults of a writer (default: all)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for name, writer in WRITERS.items():
        if args.words and not any(word in name for word in args.words):
            continue
        started, num_bad = time.perf_counter(), 0
        with TemporaryDirectory() as work:
            campaign = Campaign(name, writer, Path(work))
            cases = campaign.cases()
            if args.most is not None:
                cases = campaign.sampled(args.most)
            for case in cases:
                problems = campaign.problems(case)
                num_bad += bool(problems)
                if problems:
                    print(f"    {name}: {case}", *problems, sep="\n        ", flush=True)
        print(
            f"{name:42} {len(campaign.undisturbed.calls):4} calls {len(cases):5} faults "
            f"{num_bad:4} not survived {time.perf_counter() - started:7.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
