"""
How long one sentence takes, as services and interactive use ask for it: `Elmo` and `ElmoEmbedder`
beside AllenNLP's `Elmo` on the same weights and sentences, in one run and by turns:

    python benchmarks/latency.py --model small original --dtype float32 bfloat16

Weights are random, of the released models' sizes, and so are words, of 1 to 12 letters. See
benchmarks/README.md for what the columns mean.
"""

import argparse
import random
import string
import tempfile
from functools import partial
from itertools import product
from statistics import median, quantiles
from typing import Callable, Dict, List, Sequence

import torch
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from embed import MODELS, new_bilm
from work import timed

from elmo_scratch import Elmo, ElmoEmbedder, batch_to_ids
from elmo_scratch.interop.official import write_official_bilm

LENGTHS = (1, 5, 20, 60)
"""Tokens of a sentence."""

PROBE_BYTES = 2**29
"""More than any cache holds."""

CPU = torch.device("cpu")

Embed = Callable[[List[str]], object]


def main() -> None:
    """Prints a row for each model, precision, length, and for new and for known words."""
    args = parse_arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    bandwidth = memory_bandwidth()
    print(f"{torch.get_num_threads()} threads, {bandwidth / 1e9:.1f} GB/s of memory\n")
    columns = ["model", "products", "tokens", "words", "Elmo p50", "p95", "ElmoEmbedder p50", "p95"]
    columns += ["AllenNLP's p50", "p95", "ratio", "times the weights' bytes"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * 4}{'---:|' * 8}")
    for model in args.model:
        with tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(0)
            write_official_bilm(new_bilm(model), folder)
            for dtype in args.dtype:
                measure(model, dtype, folder, args.repeats, bandwidth)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", nargs="+", choices=MODELS, default=["small"])
    parser.add_argument(
        "--dtype", nargs="+", choices=("float32", "bfloat16"), default=["float32"], help="products"
    )
    parser.add_argument("--repeats", type=int, default=30, help="sentences (default: 30)")
    parser.add_argument("--threads", type=int, help="(default: PyTorch's)")
    return parser.parse_args()


def measure(model: str, dtype: str, folder: str, repeats: int, bandwidth: float) -> None:
    """Of one model and precision."""
    files = (f"{folder}/options.json", f"{folder}/weights.hdf5")
    ours = Elmo(*files, 1, dropout=0.0, matmul_dtype=dtype).eval()
    embedder = ElmoEmbedder(*files, matmul_dtype=dtype)
    theirs = AllenNlpElmo(*files, 1, dropout=0.0).eval()
    systems: Dict[str, Embed] = {
        "Elmo": partial(embed_by, ours),
        "ElmoEmbedder": embedder.embed_sentence,
        "AllenNLP": partial(embed_by, theirs),
    }
    weights = sum(one.numel() for one in ours.bilm.parameters()) * getattr(torch, dtype).itemsize
    shortest = weights / bandwidth
    for tokens, kind in product(LENGTHS, ("new", "known")):
        times = times_by_turns(systems, sentences(tokens, kind, repeats))
        row = [model, dtype, str(tokens), kind]
        for name in systems:
            row += [f"{1000 * one:.1f}" for one in (median(times[name]), p95(times[name]))]
        middle = median(times["Elmo"])
        row += [f"{median(times['AllenNLP']) / middle:.1f} ×", f"{middle / shortest:.1f}"]
        print(f"| {' | '.join(row)} |", flush=True)


def embed_by(elmo: torch.nn.Module, sentence: List[str]) -> object:
    """What a service does with `Elmo`."""
    with torch.inference_mode():
        return elmo(batch_to_ids([sentence]))["elmo_representations"][0]


def sentences(tokens: int, kind: str, repeats: int) -> List[List[str]]:
    """Random sentences of that many tokens, and one before them: the same one again, if known."""
    drawn = random.Random(f"{tokens} {kind}")

    def word() -> str:
        return "".join(drawn.choices(string.ascii_lowercase, k=drawn.randint(1, 12)))

    found = [[word() for _ in range(tokens)] for _ in range(repeats + 1)]
    return found if kind == "new" else found[:1] * (repeats + 1)


def times_by_turns(systems: Dict[str, Embed], texts: Sequence[List[str]]) -> Dict[str, List[float]]:
    """The seconds of each sentence by each system, but for the first sentence."""
    times: Dict[str, List[float]] = {name: [] for name in systems}
    for number, text in enumerate(texts):
        for name, embed in systems.items():
            seconds, _ = timed(partial(embed, text), CPU)
            if number:
                times[name].append(seconds)
    return times


def p95(seconds: Sequence[float]) -> float:
    """The time that one sentence of twenty exceeds."""
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


def memory_bandwidth() -> float:
    """Bytes that a sum over a large tensor reads in a second, the best of several."""
    numbers = torch.ones(PROBE_BYTES // 4)
    return PROBE_BYTES / min(timed(numbers.sum, CPU)[0] for _ in range(5))


if __name__ == "__main__":
    main()
