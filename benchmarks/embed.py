"""
How fast a biLM runs, beside AllenNLP's own `Elmo` on the same weights and sentences, in one run and
by turns:

    python benchmarks/embed.py --model original --dtype float32
    python benchmarks/embed.py --model small original --dtype bfloat16 --task inference training

Weights are random, of the released models' sizes. Without `--text` the sentences are those of
fixtures/text, two to a line. See benchmarks/README.md for what the lines mean.
"""

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from itertools import product
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set, Tuple

import numpy
import torch
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from memory import peak_memory_on
from work import lstm_operations, product_rate, timed, word_operations

from elmo_scratch import Elmo, batch_to_ids
from elmo_scratch.interop.official import build_bilm, write_official_bilm
from elmo_scratch.interop.official.options import CharCnnOptions, LstmOptions, Options
from elmo_scratch.kernels.library import LIBRARY
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules import BiLm

ROOT = Path(__file__).parent.parent
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
MODELS = {
    "small": Options(
        LstmOptions(1024, 128, 2, 3.0, 3.0, True), CharCnnOptions(16, FILTERS, 1, "relu", 50)
    ),
    "original": Options(
        LstmOptions(4096, 512, 2, 3.0, 3.0, True), CharCnnOptions(16, FILTERS, 2, "relu", 50)
    ),
}
TASKS = {"inference": 64, "training": 32}
"""Sentences of a batch."""

TRAINING_LENGTH = 20
LENGTHS = range(3, 61)
"""Words that a sentence may have to be measured on."""

SYSTEMS = ("elmo_scratch", "allennlp")


def main() -> None:
    """Prints a table, and a line of JSON, for each combination that is asked for."""
    asked = parse_arguments()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    for model, task, dtype in product(asked.model, asked.task, asked.dtype):
        measure(argparse.Namespace(**{**vars(asked), "model": model, "task": task, "dtype": dtype}))


def measure(args: argparse.Namespace) -> None:
    """Of one model, task and precision."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        if args.peak_memory_of:
            print(system_peak_memory(args, args.weights, device))
            return
        torch.manual_seed(0)
        write_official_bilm(new_bilm(args.model), folder)
        memory = {system: measured_memory(args, system, folder, device) for system in SYSTEMS}
        models = {system: load(system, args, folder).to(device) for system in SYSTEMS}
    batches = [ids.to(device) for ids in read_batches(args)]
    rate = product_rate(MixedPrecision.used(args.dtype, device), device)
    times = run_by_turns(models, batches, args.task, args.repeats, device)
    work = operations(models["elmo_scratch"], batches, args.task)
    difference, cosine = closeness(models, batches, args.task)
    reached = work / statistics.median(times["elmo_scratch"])
    measured = {
        "largest_difference": difference,
        "smallest_cosine": round(cosine, 6),
        "gflop_per_s": round(reached / 1e9, 1),
        "product_gflop_per_s": round(rate / 1e9, 1),
        "share_of_product_rate": round(reached / rate, 3),
    }
    report(args, device, batches, times, memory, measured)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_and_text(parser, "+")
    parser.add_argument("--repeats", type=int, default=5, help="passes (default: 5)")
    parser.add_argument("--threads", type=int, help="(default: PyTorch's)")
    parser.add_argument("--peak-memory-of", choices=SYSTEMS, help=argparse.SUPPRESS)
    parser.add_argument("--weights", help=argparse.SUPPRESS)
    return parser.parse_args()


def add_model_and_text(parser: argparse.ArgumentParser, nargs: Optional[str] = None) -> None:
    """The arguments that say which model does what with which text, `nargs` of the first three."""
    choices = {"model": MODELS, "dtype": ("float32", "bfloat16"), "task": TASKS}
    for name, known in choices.items():
        first = next(iter(known))
        parser.add_argument(
            f"--{name}",
            nargs=nargs,
            choices=known,
            default=first if nargs is None else [first],
            help=f"(default: {first})",
        )
    parser.add_argument("--text", type=Path, help="sentences, one a line, words between spaces")
    parser.add_argument("--batches", type=int, default=8, help="at most so many (default: 8)")


def new_bilm(model: str) -> BiLm:
    """A biLM of one of the released sizes, with random weights."""
    return build_bilm(MODELS[model], None, state="carry", matmul_dtype="float32")


def load(system: str, args: argparse.Namespace, folder: str) -> torch.nn.Module:
    """One of the two systems with the weights in `folder`."""
    files = (f"{folder}/options.json", f"{folder}/weights.hdf5", 1)
    is_trained = args.task == "training"
    if system == "allennlp":
        model: torch.nn.Module = AllenNlpElmo(*files, requires_grad=is_trained, dropout=0.0)
    else:
        model = Elmo(*files, requires_grad=is_trained, dropout=0.0, matmul_dtype=args.dtype)
    return model.train(is_trained)


def read_batches(args: argparse.Namespace) -> List[torch.Tensor]:
    """The ids of the characters of each batch."""
    if args.text:
        lines = args.text.read_text(encoding="utf-8").splitlines()
    else:
        singles = (ROOT / "fixtures/text/sentences.txt").read_text(encoding="utf-8").splitlines()
        lines = [" ".join(pair) for pair in zip(singles[::2], singles[1::2])]
    sentences = [line.split() for line in lines if len(line.split()) in LENGTHS]
    if args.task == "training":
        words = [word for sentence in sentences for word in sentence]
        sentences = list(in_groups(words, TRAINING_LENGTH))
    batches = list(in_groups(sentences, TASKS[args.task]))[: args.batches]
    if not batches:
        sys.exit(f"expected at least {TASKS[args.task]} sentences, but got {len(sentences)}")
    return [batch_to_ids(batch) for batch in batches]


def in_groups(items: List, size: int) -> Iterator[List]:
    """Whole groups of items."""
    for start in range(0, len(items) - size + 1, size):
        yield items[start : start + size]


def run_batch(model: torch.nn.Module, ids: torch.Tensor, task: str) -> None:
    """Computes the mixed layers of a batch; in training, also all gradients."""
    if task == "inference":
        with torch.inference_mode():
            model(ids)
        return
    model.zero_grad(set_to_none=True)
    model(ids)["elmo_representations"][0].square().mean().backward()


def run_by_turns(
    models: Dict[str, torch.nn.Module],
    batches: List[torch.Tensor],
    task: str,
    repeats: int,
    device: torch.device,
) -> Dict[str, List[float]]:
    """
    The seconds of each pass over all batches by both systems, batch by batch in turn. Each pass
    starts without known words.
    """
    passes: Dict[str, List[float]] = {system: [] for system in SYSTEMS}
    for system in SYSTEMS:
        run_batch(models[system], batches[0], task)
    for _ in range(repeats):
        passed = dict.fromkeys(SYSTEMS, 0.0)
        start_pass(models)
        for ids in batches:
            for system in SYSTEMS:
                seconds, _ = timed(partial(run_batch, models[system], ids, task), device)
                passed[system] += seconds
        for system in SYSTEMS:
            passes[system].append(passed[system])
    return passes


def closeness(
    models: Dict[str, torch.nn.Module], batches: List[torch.Tensor], task: str
) -> Tuple[float, float]:
    """
    The largest difference of any number of any layer between the two systems, and the smallest
    cosine between two vectors of the same token in the same layer.
    """
    start_pass(models)
    differences, cosines = [], []
    for ids in batches:
        # On a GPU PyTorch would round what AllenNLP convolves.
        exact = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
        with exact, torch.set_grad_enabled(task == "training"):
            ours = models["elmo_scratch"].bilm(ids, (ids > 0).any(dim=-1))
            theirs = models["allennlp"]._elmo_lstm(ids)
        for layer, expected in zip(ours.layers.detach(), theirs["activations"]):
            vectors, wanted = layer[ours.mask], expected.detach()[theirs["mask"]]
            differences.append(float((vectors - wanted).abs().max()))
            cosines.append(float(torch.cosine_similarity(vectors, wanted, dim=-1).min()))
    # NaN stays NaN, which Python's `max` and `min` would lose.
    return float(numpy.max(differences)), float(numpy.min(cosines))


def start_pass(models: Dict[str, torch.nn.Module]) -> None:
    """Lets both forget the states, and ours the words, of the batches before."""
    models["elmo_scratch"].reset_states()
    models["elmo_scratch"].bilm.token_encoder.forget_words()
    models["allennlp"]._elmo_lstm._elmo_lstm.reset_states()


def operations(model: torch.nn.Module, batches: List[torch.Tensor], task: str) -> float:
    """
    Operations of the products that the batches need: of the LSTMs for every position, of the
    character encoder for every distinct word, its windows up to the word's end; in training three
    times as many.
    """
    bilm = model.bilm
    needed = 0.0
    known: Set[Tuple[int, ...]] = set()
    for ids in batches:
        positions = int((ids > 0).any(dim=-1).sum()) + 2 * len(ids)
        needed += positions * lstm_operations(bilm)
        words = {tuple(word) for word in ids.flatten(0, 1).tolist() if any(word)} - known
        needed += word_operations(bilm.token_encoder, torch.tensor(sorted(words)))
        if task == "inference":
            known |= words
    return needed * (3 if task == "training" else 1)


def measured_memory(
    args: argparse.Namespace, system: str, folder: str, device: torch.device
) -> float:
    """The peak memory, in MiB, of running two batches through one system, on a GPU the GPU's."""
    if device.type == "cuda":
        gc.collect()
        torch.cuda.reset_peak_memory_stats()
        others = torch.cuda.memory_allocated() / 2**20
        own = argparse.Namespace(**{**vars(args), "peak_memory_of": system, "batches": 2})
        return system_peak_memory(own, folder, device) - others
    command = [sys.executable, __file__, "--peak-memory-of", system, "--batches", "2"]
    command += ["--weights", folder]
    command += ["--model", args.model, "--dtype", args.dtype, "--task", args.task]
    command += ["--text", str(args.text)] if args.text else []
    command += ["--threads", str(args.threads)] if args.threads else []
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def system_peak_memory(args: argparse.Namespace, folder: str, device: torch.device) -> float:
    """The peak memory of this process or its GPU, in MiB, with one system only."""
    model = load(args.peak_memory_of, args, folder).to(device)
    for ids in read_batches(args):
        run_batch(model, ids.to(device), args.task)
    return peak_memory_on(device)


def report(
    args: argparse.Namespace,
    device: torch.device,
    batches: List[torch.Tensor],
    times: Dict[str, List[float]],
    memory: Dict[str, float],
    measured: Dict[str, float],
) -> None:
    """Prints what was found."""
    tokens = sum(int((ids > 0).any(dim=-1).sum()) for ids in batches)
    speeds = {system: tokens / statistics.median(times[system]) for system in SYSTEMS}
    found = {
        "model": args.model,
        "dtype": args.dtype,
        "task": args.task,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "compiled_code": LIBRARY is not None,
        "tokens": tokens,
        "tokens_per_s": round(speeds["elmo_scratch"], 1),
        "allennlp_tokens_per_s": round(speeds["allennlp"], 1),
        "ratio": round(speeds["elmo_scratch"] / speeds["allennlp"], 2),
        **measured,
        "peak_mib": round(memory["elmo_scratch"]),
        "allennlp_peak_mib": round(memory["allennlp"]),
    }
    for name, value in found.items():
        print(f"{name:>24}  {value}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
