"""
How fast the output softmaxes run, on random states and on targets that follow Zipf's law:

    python benchmarks/softmax.py --words 10001 --dim 128
    python benchmarks/softmax.py --words 793471 --dim 512 --softmax sampled adaptive

See benchmarks/README.md for what the lines mean.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from functools import partial
from itertools import pairwise
from typing import Any, Dict, List

import torch
from allennlp.common import Params
from memory import peak_memory
from work import product_rate, timed

from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.modules.softmaxes import AdaptiveSoftmax, OutputSoftmax
from elmo_scratch.training import FusedAdagrad

CPU = torch.device("cpu")
SOFTMAXES = ("full", "sampled", "adaptive")


def main() -> None:
    """Prints one line of JSON a softmax."""
    args = parse_arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
    if len(args.softmax) > 1:
        # In a process of its own each has its own peak of memory.
        for name in args.softmax:
            subprocess.run([sys.executable, *sys.argv, "--softmax", name], check=True)
        return
    torch.manual_seed(0)
    (name,) = args.softmax
    print(json.dumps({"softmax": name, **measure(name, args)}))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--softmax", nargs="+", choices=SOFTMAXES, default=SOFTMAXES)
    parser.add_argument("--words", type=int, default=10001, help="(default: 10001)")
    parser.add_argument("--dim", type=int, default=128, help="(default: 128)")
    parser.add_argument("--predictions", type=int, default=2560, help="of a batch (default: 2560)")
    parser.add_argument(
        "--samples", type=int, help="negatives (default: 8192, or a tenth of words)"
    )
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--evaluate", action="store_true", help="time the exact evaluation too")
    parser.add_argument("--repeats", type=int, default=5, help="batches (default: 5)")
    parser.add_argument("--threads", type=int, help="(default: PyTorch's)")
    return parser.parse_args()


def measure(name: str, args: argparse.Namespace) -> Dict[str, Any]:
    """The measurements of one softmax."""
    samples = args.samples or min(8192, args.words // 10)
    params = {"type": name, **({"num_samples": samples} if name == "sampled" else {})}
    softmax = OutputSoftmax.from_params(Params(params), num_words=args.words, dim=args.dim)
    MixedPrecision.set_everywhere(softmax, args.dtype)
    if isinstance(softmax, AdaptiveSoftmax):
        know_frequencies(softmax)
    optimizer = FusedAdagrad(
        list(softmax.named_parameters()), lr=0.2, initial_accumulator_value=1.0
    )
    states = torch.randn(args.predictions, args.dim, requires_grad=True)
    batches = [zipf(args.words, args.predictions) for _ in range(args.repeats + 1)]
    rates, models, optimizers, evaluations = [], [], [], []
    for targets in batches:
        rates.append(product_rate(MixedPrecision.used(args.dtype, CPU), CPU))
        optimizer.zero_grad(set_to_none=True)
        models.append(timed(partial(train, softmax, states, targets), CPU)[0])
        optimizers.append(timed(optimizer.step, CPU)[0])
        if args.evaluate:
            with torch.no_grad():
                evaluations.append(timed(partial(softmax.eval(), states, targets), CPU)[0])
    # The first batch finds memory and code that are not ready yet.
    model, step = (statistics.median(seconds[1:]) for seconds in (models, optimizers))
    rate = max(rates)
    work = operations(softmax, args, samples, batches)
    return {
        "words": args.words,
        "dim": args.dim,
        "predictions": args.predictions,
        "dtype": args.dtype,
        "threads": torch.get_num_threads(),
        "predictions_per_s": round(args.predictions / model),
        "with_optimizer_per_s": round(args.predictions / (model + step)),
        **(
            {"evaluated_per_s": round(args.predictions / statistics.median(evaluations[1:]))}
            if evaluations
            else {}
        ),
        "optimizer_ms": round(step * 1e3, 1),
        "share_of_product_rate": round(work / model / rate, 3),
        "product_gflop_per_s": round(rate / 1e9, 1),
        "peak_mib": round(peak_memory()),
    }


def know_frequencies(softmax: AdaptiveSoftmax) -> None:
    """
    Gives words and clusters the probabilities that they have in a text. Which clusters the
    evaluation looks into depends on them; a trained softmax knows more, and looks into fewer.
    """
    adaptive = softmax.adaptive
    ends = torch.tensor([1, *(end + 1 for end in adaptive.cutoffs)], dtype=torch.float64)
    clusters = (ends[2:] / ends[1:-1]).log()  # in the measure in which word n has 1 / n
    words = [1.0 / torch.arange(*span) for span in pairwise((ends.long()).tolist())]
    with torch.no_grad():
        adaptive.head.bias.copy_(torch.cat([words[0], clusters]).log())
        for tail, of_tail in zip(adaptive.tail, words[1:]):
            tail[-1].bias.copy_(of_tail.log())


def train(softmax: torch.nn.Module, states: torch.Tensor, targets: torch.Tensor) -> None:
    """The loss of a batch and all gradients."""
    softmax.train()(states, targets).loss.backward()


def zipf(words: int, count: int) -> torch.Tensor:
    """Words as frequent as in a text, shape `(count,)`."""
    return (torch.rand(count).double() * math.log(words)).exp().long().clamp(max=words - 1)


def operations(
    softmax: torch.nn.Module, args: argparse.Namespace, samples: int, batches: List[torch.Tensor]
) -> float:
    """
    Operations of the products that a batch needs for scores and both gradients. Of the clusters of
    the adaptive softmax, those of the predictions whose target is in them.
    """
    each = 3 * 2.0 * args.predictions
    if not isinstance(softmax, AdaptiveSoftmax):
        return each * args.dim * (samples if hasattr(softmax, "sampler") else args.words)
    adaptive = softmax.adaptive
    needed = each * adaptive.head.weight.numel()
    targets = torch.cat(batches)
    for first, end, tail in zip(adaptive.cutoffs, adaptive.cutoffs[1:], adaptive.tail):
        share = float(((targets >= first) & (targets < end)).float().mean())
        needed += each * share * sum(weight.numel() for weight in tail.parameters())
    return needed


if __name__ == "__main__":
    main()
