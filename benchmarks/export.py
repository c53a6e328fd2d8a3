"""
How fast a text becomes a file of layers, from the first line read to the last byte written, beside
the bare biLM on the same batches and a plain loop over AllenNLP's `Elmo` with h5py; in one run and
by turns:

    python benchmarks/export.py --model small --dtype bfloat16
    python benchmarks/export.py --memory
    python benchmarks/export.py --ray 1 2 4 8 --batches 128 --repeats 2

The first prints one table and one line of JSON. The second prints the peak memory of exports of
10,000 and of 1,000,000 sentences with a tiny model, with and without the index of sentences. The
third prints a table of exports by the engine `ray` with so many workers, each sentence starting
from zeros. See benchmarks/README.md for what the lines mean.
"""

import argparse
import json
import logging
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List, Tuple

import h5py
import numpy
import torch
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from embed import LENGTHS, MODELS, ROOT, new_bilm
from work import timed

from elmo_scratch import Elmo, SentenceLayers, batch_to_ids, write_official_bilm
from elmo_scratch.export import (
    ExportSettings,
    InputText,
    ModelSource,
    RayEngine,
    export_layers,
)
from elmo_scratch.export.export import Engine, OneProcess
from elmo_scratch.export.parts import PartWriting
from elmo_scratch.export.plan import Span
from elmo_scratch.terminal import counted

SYSTEMS = ("export", "bare_bilm", "allennlp_loop")
BATCH_SIZE = 64
MEMORY_SENTENCES = (10_000, 1_000_000)
TINY = ROOT / "fixtures/elmo/residual"


def main() -> None:
    """Prints what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=MODELS, default="small", help="(default: small)")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--text", type=Path, help="sentences, one a line, words between spaces")
    parser.add_argument("--batches", type=int, default=16, help="at most so many (default: 16)")
    parser.add_argument("--repeats", type=int, default=5, help="passes (default: 5)")
    parser.add_argument("--without-allennlp", action="store_true", help="leave its loop out")
    parser.add_argument("--memory", action="store_true", help="measure memory in place of speed")
    parser.add_argument(
        "--sentences", type=int, nargs="+", default=MEMORY_SENTENCES, help="with --memory"
    )
    parser.add_argument(
        "--ray", type=int, nargs="+", metavar="WORKERS", help="measure exports by so many"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.memory:
            measure_memory(Path(folder), args.sentences)
        elif args.ray:
            measure_ray(args, Path(folder))
        else:
            measure_speed(args, Path(folder))


def measure_speed(args: argparse.Namespace, folder: Path) -> None:
    """Times the systems by turns."""
    torch.manual_seed(0)
    write_official_bilm(new_bilm(args.model), folder)
    files = (folder / "options.json", folder / "weights.hdf5")
    ours, theirs = folder / "ours.hdf5", folder / "theirs.hdf5"
    lines = read_lines(args)
    text_file = folder / "text.txt"
    text_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokens = sum(len(line.split()) for line in lines)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    layers = SentenceLayers.from_official(
        *files, matmul_dtype=args.dtype, cuda_device=0 if device.type == "cuda" else -1
    )
    bare = Elmo(*files, 1, dropout=0.0, matmul_dtype=args.dtype).eval().to(device)
    ids = [batch_to_ids(batch).to(device) for batch in batches_of(lines)]

    def export() -> None:
        """As `allennlp elmo --all` does, when its model is loaded."""
        layers.bilm.token_encoder.forget_words()
        export_layers(InputText("text", text_file), ours, layers, ExportSettings())

    def bare_bilm() -> None:
        """As benchmarks/embed.py does."""
        bare.bilm.token_encoder.forget_words()
        with torch.inference_mode():
            for batch in ids:
                bare(batch)

    runs = {"export": export, "bare_bilm": bare_bilm}
    if not args.without_allennlp:
        options, weights = map(str, files)
        their_elmo = AllenNlpElmo(options, weights, 1, dropout=0.0).eval().to(device)
        runs["allennlp_loop"] = lambda: allennlp_loop(their_elmo, text_file, theirs)
    times: Dict[str, List[float]] = {system: [] for system in runs}
    for repeat in range(args.repeats + 1):
        for system, run in runs.items():
            # To replace a file takes longer than to write one: its pages are given back first.
            for output in (ours, theirs):
                output.unlink(missing_ok=True)
            seconds, _ = timed(run, device)
            if system == "export":
                size = ours.stat().st_size
            if repeat > 0:  # the first one warms up
                times[system].append(seconds)
    speeds = {system: tokens / statistics.median(passes) for system, passes in times.items()}
    found = {
        "model": args.model,
        "dtype": args.dtype,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "tokens": tokens,
        **{f"{system}_tokens_per_s": round(speed, 1) for system, speed in speeds.items()},
        "share_of_bare_bilm": round(speeds["export"] / speeds["bare_bilm"], 3),
        "written_mb_per_s": round(size / 1e6 / statistics.median(times["export"]), 1),
    }
    if "allennlp_loop" in speeds:
        found["ratio_to_allennlp_loop"] = round(speeds["export"] / speeds["allennlp_loop"], 2)
    for name, value in found.items():
        print(f"{name:>26}  {value}")
    print(json.dumps(found))


def measure_ray(args: argparse.Namespace, folder: Path) -> None:
    """
    Times exports by Ray's workers, from the call to the end and after the first quarter of the
    pieces, and beside them one process that computes on all processors; by turns.
    """
    import ray

    torch.manual_seed(0)
    write_official_bilm(new_bilm(args.model), folder)
    source = ModelSource(
        str(folder / "options.json"), str(folder / "weights.hdf5"), "reset", args.dtype
    )
    layers = source.load()
    lines = read_lines(args)
    text_file, output = folder / "text.txt", folder / "layers.hdf5"
    text_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    # As the engine does when it starts a cluster, but as if there were a processor for each worker.
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray.init(num_cpus=max(args.ray), log_to_driver=False, logging_level=logging.ERROR)
    engines: Dict[str, Engine] = {"one process": OneProcess()}
    engines.update({counted(one, "worker"): RayEngine(source, one) for one in args.ray})
    whole: Dict[str, List[float]] = {name: [] for name in engines}
    steady: Dict[str, List[float]] = {name: [] for name in engines}
    for _ in range(args.repeats):
        for name, engine in engines.items():
            layers.bilm.token_encoder.forget_words()
            watched = Watched(engine)
            start = time.perf_counter()
            export_layers(
                InputText("text", text_file), output, layers, ExportSettings(), engine=watched
            )
            whole[name].append(len(lines) / (time.perf_counter() - start))
            steady[name].append(watched.sentences_per_s())
            output.unlink()
    ray.shutdown()
    print(f"{len(lines):,} sentences, {args.model}, {args.dtype}, {os.cpu_count()} processors\n")
    print("| sentences/s | from start to end | after the first quarter of the pieces |")
    print("|---|---:|---:|")
    for name in engines:
        speeds = [statistics.median(found[name]) for found in (whole, steady)]
        print(f"| {name} | {' | '.join(f'{speed:.0f}' for speed in speeds)} |")


class Watched(Engine):
    """Another engine, which keeps when its sentences are done."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.follows_the_text = engine.follows_the_text
        self._done: List[Tuple[float, int]] = []

    def write(
        self,
        writing: PartWriting,
        missing: List[Span],
        layers: SentenceLayers,
        done: Callable[[int], None],
    ) -> None:
        def watched(number: int) -> None:
            self._done.append((time.perf_counter(), number))
            done(number)

        self._engine.write(writing, missing, layers, watched)

    def sentences_per_s(self) -> float:
        """After the first quarter of the pieces; NaN if they are done all at once."""
        first = len(self._done) // 4
        (start, _), (end, _) = self._done[first], self._done[-1]
        number = sum(number for _, number in self._done[first + 1 :])
        return number / (end - start) if number else math.nan


def read_lines(args: argparse.Namespace) -> List[str]:
    """The sentences."""
    if args.text:
        lines = args.text.read_text(encoding="utf-8").splitlines()
    else:
        singles = (ROOT / "fixtures/text/sentences.txt").read_text(encoding="utf-8").splitlines()
        lines = [" ".join(pair) for pair in zip(singles[::2], singles[1::2])]
    lines = [line.strip() for line in lines if len(line.split()) in LENGTHS]
    return lines[: BATCH_SIZE * args.batches]


def batches_of(lines: List[str]) -> List[List[List[str]]]:
    """The words of each sentence of each batch."""
    return [
        [line.split() for line in lines[start : start + BATCH_SIZE]]
        for start in range(0, len(lines), BATCH_SIZE)
    ]


def allennlp_loop(elmo: AllenNlpElmo, text_file: Path, output_file: Path) -> None:
    """What one writes with AllenNLP's class and h5py, all layers."""
    bilm = elmo.get_submodule("_elmo_lstm")
    device = next(bilm.parameters()).device
    lines = text_file.read_text(encoding="utf-8").splitlines()
    with h5py.File(output_file, "w") as file, torch.inference_mode():
        number = 0
        for batch in batches_of(lines):
            output = bilm(batch_to_ids(batch).to(device))
            layers = torch.stack(output["activations"], dim=1).cpu().numpy()
            for row, sentence in enumerate(batch):
                # Without the marks of the sentence's begin and end.
                file.create_dataset(
                    str(number), data=numpy.ascontiguousarray(layers[row, :, 1 : len(sentence) + 1])
                )
                number += 1


def measure_memory(folder: Path, counts: List[int]) -> None:
    """Prints the peak memory of processes that export texts of different sizes."""
    words = sorted(set((ROOT / "fixtures/text/sentences.txt").read_text("utf-8").split()))
    draw = random.Random(0)
    text_file = folder / "text.txt"
    with text_file.open("w", encoding="utf-8") as file:
        for _ in range(max(counts)):
            print(*draw.choices(words, k=draw.randint(5, 15)), file=file)
    for option in ("--forget-sentences", "--file-friendly-logging"):
        peaks = []
        for count in counts:
            part = folder / "part.txt"
            with text_file.open("rb") as whole, part.open("wb") as file:
                file.writelines(line for line, _ in zip(whole, range(count)))
            peaks.append(peak_memory(part, folder / f"{count}.hdf5", option))
            (folder / f"{count}.hdf5").unlink()
        index = "without" if option == "--forget-sentences" else "with"
        print(
            f"{index} the index of sentences: "
            + ", ".join(f"{count:,} sentences {peak:.0f} MiB" for count, peak in zip(counts, peaks))
            + f", {peaks[-1] / peaks[0]:.3f} times"
        )


def peak_memory(text_file: Path, output_file: Path, option: str) -> float:
    """The peak memory of a process that runs `allennlp elmo`, in MiB."""
    # Not `ru_maxrss`: a process takes that over from the one that started it.
    program = (
        "from allennlp.commands import main\n"
        "main('allennlp')\n"
        "status = open('/proc/self/status').read()\n"
        "print(int(status.split('VmHWM:')[1].split()[0]) / 2**10)\n"
    )
    command = [sys.executable, "-c", program, "elmo", str(text_file), str(output_file), "--top"]
    command += ["--options-file", str(TINY / "options.json")]
    command += ["--weight-file", str(TINY / "weights.hdf5"), option]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ)
    return float(run.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
