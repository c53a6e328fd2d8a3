"""
How long one waits for the first vectors, in a process that has just begun:

    python benchmarks/startup.py

Each line is the median over processes that do nothing else: importing PyTorch alone, which nothing
can be faster than; importing the package; and, from the start of Python on, one sentence embedded
by a model of the released small model's size with random weights.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Dict, List

import torch
from embed import new_bilm

from elmo_scratch import write_official_bilm

PROGRAMS = {
    "python": "",
    "import_torch": "import torch",
    "import_elmo_scratch": "import elmo_scratch",
    "first_sentence": (
        "from elmo_scratch import ElmoEmbedder\n"
        "embedder = ElmoEmbedder('{folder}/options.json', '{folder}/weights.hdf5')\n"
        "assert embedder.embed_sentence(['The', 'river', 'bank', '.']).shape == (3, 4, 256)\n"
    ),
    "allennlp_imported": "from allennlp.modules.elmo import Elmo",
}
"""What a process runs."""


def main() -> None:
    """Prints one table, and one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7, help="processes of each (default: 7)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        write_official_bilm(new_bilm("small"), folder)
        times: Dict[str, List[float]] = {name: [] for name in PROGRAMS}
        for number in range(args.repeats + 1):
            for name, program in PROGRAMS.items():
                command = [sys.executable, "-c", program.format(folder=folder)]
                start = time.perf_counter()
                subprocess.run(command, check=True)
                if number > 0:  # the first one fills the system's caches
                    times[name].append(time.perf_counter() - start)
    found = {name: round(statistics.median(seconds), 2) for name, seconds in times.items()}
    for name, seconds in found.items():
        print(f"{name:>20}  {seconds} s")
    print(json.dumps({"torch": torch.__version__, **found}))


if __name__ == "__main__":
    main()
