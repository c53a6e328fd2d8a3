"""
How long one waits for what a process does first:

    python benchmarks/startup.py

Each line is the median over processes that do nothing else: importing PyTorch alone, which nothing
can be faster than; importing the package; reading a biLM of the tests, from an archive and from
official files, imports left out, and one of the released small model's size, with random weights,
from a model folder; from the start of Python on, `Elmo.from_pretrained` of that folder, and one
sentence embedded by the same model; the help of a subcommand, the error that an argument is
missing, and the help of one of AllenNLP's own, for which all plugins are imported, as for a
training. CHECKOUT, the folder of another version, takes turns with this one.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Tuple

import torch
from embed import new_bilm

from elmo_scratch import write_bilm_folder, write_official_bilm

ROOT = Path(__file__).resolve().parents[1]

ARCHIVE = ROOT / "tests" / "golden" / "characters" / "model.tar.gz"
OFFICIAL = [
    str(ROOT / "fixtures" / "elmo" / "residual" / name) for name in ("options.json", "weights.hdf5")
]

READ = """
import time
import torch
from elmo_scratch import Elmo, read_bilm_archive, read_official_bilm
clock, processor = time.perf_counter(), time.process_time()
{call}
print(time.perf_counter() - clock, time.process_time() - processor)
"""
"""Reads a biLM, and prints what that took beside all imports of AllenNLP."""

PROGRAMS = {
    "python": ["-c", ""],
    "import_torch": ["-c", "import torch"],
    "import_elmo_scratch": ["-c", "import elmo_scratch"],
    "archive": ["-c", READ.format(call=f"read_bilm_archive({str(ARCHIVE)!r})")],
    "official_files": ["-c", READ.format(call=f"read_official_bilm(*{OFFICIAL!r})")],
    "model_folder": ["-c", READ.format(call="Elmo.from_pretrained('{folder}/model')")],
    "from_pretrained": [
        "-c",
        "from elmo_scratch import Elmo\nElmo.from_pretrained('{folder}/model')\n",
    ],
    "first_sentence": [
        "-c",
        "from elmo_scratch import ElmoEmbedder\n"
        "embedder = ElmoEmbedder('{folder}/options.json', '{folder}/weights.hdf5')\n"
        "assert embedder.embed_sentence(['The', 'river', 'bank', '.']).shape == (3, 4, 256)\n",
    ],
    "import_allennlp": ["-c", "import allennlp"],
    "allennlp_elmo": ["-c", "from allennlp.modules.elmo import Elmo"],
    "help": ["-m", "allennlp", "elmo", "--help"],
    "mistake": ["-m", "allennlp", "elmo", "text.txt", "layers.hdf5"],
    "plugins": ["-m", "allennlp", "evaluate", "--help"],
}
"""What a process runs."""


def main() -> None:
    """Prints one table, and one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM", help=f"some of {', '.join(PROGRAMS)}"
    )
    parser.add_argument("--repeats", type=int, default=7, help="processes of each (default: 7)")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="another version's folder")
    args = parser.parse_args()
    for name in args.programs:
        if name not in PROGRAMS:
            parser.error(f"expected some of {', '.join(PROGRAMS)}, got {name}")
    versions = {"": ROOT, **({"beside_": args.beside.resolve()} if args.beside else {})}
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        bilm = new_bilm("small")
        write_official_bilm(bilm, folder)
        write_bilm_folder(bilm, Path(folder) / "model")
        times: Dict[str, List[Tuple[float, float]]] = {}
        for number in range(args.repeats + 1):
            for name in args.programs or PROGRAMS:
                program = PROGRAMS[name]
                for version, root in versions.items():
                    words = [word.replace("{folder}", folder) for word in program]
                    taken = seconds_of([sys.executable, *words], root)
                    if number > 0:  # the first one fills the system's caches
                        times.setdefault(f"{version}{name}", []).append(taken)
    found = {
        name: [round(statistics.median(numbers), 2) for numbers in zip(*taken)]
        for name, taken in times.items()
    }
    print(f"{'':>26}  {'clock':>7}  {'processor':>9}")
    for name, (clock, processor) in found.items():
        print(f"{name:>26}  {clock:>5.2f} s  {processor:>7.2f} s")
    print(json.dumps({"torch": torch.__version__, **found}))


def seconds_of(command: List[str], root: Path) -> Tuple[float, float]:
    """What a process takes, by the clock and of processors, with the package of that checkout."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True)
    clock = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # A missing argument is 2.
    if done.returncode not in (0, 2):
        sys.exit(done.stderr)
    if "print(time." in command[-1]:
        own_clock, own_processor = map(float, done.stdout.split())
        return own_clock, own_processor
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
