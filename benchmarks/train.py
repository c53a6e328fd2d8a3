"""
How fast `allennlp train` pre-trains a biLM: the whole step, with the loader, clipping and the
optimizer, by the recipe of the released models (training_config/bilm/official.libsonnet):

    python benchmarks/train.py --model small --dtype bfloat16 --text ptb.train.txt
    python benchmarks/train.py --softmax full --workers 2
    python benchmarks/train.py --words 793471 --workers 2

Without `--text` the words are drawn by Zipf's law. See benchmarks/README.md for what the lines
mean.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple

import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.params import evaluate_file
from allennlp.data import TensorDict
from work import lstm_operations, product_rate, timed, word_operations

from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.models import LanguageModel

CONFIGS = Path(__file__).parent.parent / "training_config" / "bilm"
WORDS_OF_NO_TEXT = 10_000
SENTENCE = 22
"""Words, as many as a sentence of the Penn Treebank has."""


class Parts(NamedTuple):
    """
    Seconds of the parts of a step.

    # Parameters

    loading, forward, backward, clipping, optimizer : `float`
        The sums over all steps.
    """

    loading: float
    forward: float
    backward: float
    clipping: float
    optimizer: float


def main() -> None:
    """Prints one table, and one line of JSON."""
    args = parse_arguments()
    if args.threads:
        torch.set_num_threads(args.threads)
        os.environ["OMP_NUM_THREADS"] = str(args.threads)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["ELMO_SCRATCH_CACHE"] = str(folder / "corpora")
        text = folder / "text.txt"
        text.write_text("\n".join(islice(sentences(args), num_sentences(args))) + "\n")
        config = config_of(args, text)
        speeds = trained_speeds(config, folder)
        found = {**described(args), **speeds_in_words(speeds)}
        if args.workers == 1:
            found.update(where_time_goes(config, args, folder))
    for key, value in found.items():
        print(f"{key:>24}  {value}")
    print(json.dumps(found))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=["small", "original"], default="small")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--softmax", choices=["full", "sampled", "adaptive"], default="sampled")
    parser.add_argument("--samples", type=int, default=1024, help="negatives (default: 1024)")
    parser.add_argument("--text", type=Path, help="sentences, one a line, words between spaces")
    parser.add_argument(
        "--words",
        type=int,
        default=0,
        help="of the vocabulary: if the text has fewer, words that are never read fill it up",
    )
    parser.add_argument("--batch-size", type=int, default=64, help="of a worker (default: 64)")
    parser.add_argument("--unroll-steps", type=int, default=20, help="(default: 20)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--steps", type=int, default=40, help="of an epoch (default: 40)")
    parser.add_argument("--epochs", type=int, default=5, help="one to warm up (default: 5)")
    parser.add_argument("--threads", type=int, help="of a worker (default: its share of PyTorch's)")
    return parser.parse_args()


def sentences(args: argparse.Namespace) -> Iterator[str]:
    """The text, as often as needed."""
    if args.text:
        lines = args.text.read_text(encoding="utf-8").splitlines()
        while True:
            yield from lines
    generator = random.Random(0)
    while True:
        places = (int(WORDS_OF_NO_TEXT ** generator.random()) for _ in range(SENTENCE))
        yield " ".join(f"w{place}" for place in places)


def num_sentences(args: argparse.Namespace) -> int:
    """About as many as one epoch reads."""
    positions = args.batch_size * args.workers * args.unroll_steps * args.steps
    reached = 0
    for number, sentence in enumerate(sentences(args), start=1):
        reached += len(sentence.split()) + 2
        if reached >= positions:
            return number
    raise AssertionError


def config_of(args: argparse.Namespace, text: Path) -> Dict[str, Any]:
    """The recipe with the sizes that are asked for, on the text, without validation."""
    variables = {"CORPUS_TRAIN": str(text), "CORPUS_DEV": str(text)}
    recipe = evaluate_file(str(CONFIGS / f"{args.model}.jsonnet"), ext_vars=variables)
    config = json.loads(recipe)
    vocabulary_of = args.text or text
    if args.words:
        known = vocabulary_of.read_text(encoding="utf-8")
        unread = (f"unread{number}" for number in range(args.words - len(set(known.split()))))
        vocabulary_of = text.with_name("words.txt")
        vocabulary_of.write_text(known + "\n".join(unread) + "\n", encoding="utf-8")
    config["vocabulary"].update(data_path=str(vocabulary_of), min_count=1)
    del config["validation_data_path"], config["validation_data_loader"]
    config["model"]["softmax"] = {"type": args.softmax}
    if args.softmax == "sampled":
        config["model"]["softmax"]["num_samples"] = args.samples
    config["model"]["matmul_dtype"] = args.dtype
    config["model"]["loss_weight"] = args.unroll_steps
    config["data_loader"].update(batch_size=args.batch_size, unroll_steps=args.unroll_steps)
    trainer = config["trainer"]
    trainer.update(num_epochs=args.epochs, callbacks=[{"type": "elmo_scratch_speed"}])
    trainer["checkpointer"] = {"save_completed_epochs": False}
    del trainer["validation_metric"]
    if args.workers > 1:
        device = list(range(args.workers)) if torch.cuda.is_available() else [-1] * args.workers
        config["distributed"] = {"cuda_devices": device}
    return config


def trained_speeds(config: Dict[str, Any], folder: Path) -> List[float]:
    """Tokens a second of each epoch of `allennlp train` but the first."""
    (folder / "config.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "allennlp", "train", str(folder / "config.json")]
    command += ["-s", str(folder / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    epochs = range(1, config["trainer"]["num_epochs"])
    files = [folder / "run" / f"metrics_epoch_{epoch}.json" for epoch in epochs]
    return [json.loads(file.read_text())["training_tokens_per_second"] for file in files]


def described(args: argparse.Namespace) -> Dict[str, Any]:
    """The measurements, and the machine and settings they were made with."""
    is_cuda = torch.cuda.is_available()
    return {
        "model": args.model,
        "dtype": args.dtype,
        "softmax": args.softmax,
        "samples": args.samples if args.softmax == "sampled" else None,
        **({"words": args.words} if args.words else {}),
        "streams": args.batch_size,
        "unroll_steps": args.unroll_steps,
        "workers": args.workers,
        "device": torch.cuda.get_device_name() if is_cuda else "cpu",
        "threads": num_threads(args),
        "torch": torch.__version__,
    }


def num_threads(args: argparse.Namespace) -> int:
    """Of each worker: they share those of PyTorch, where nobody says how many each has."""
    shares = 1 if "OMP_NUM_THREADS" in os.environ else args.workers
    return max(1, torch.get_num_threads() // shares)


def speeds_in_words(speeds: List[float]) -> Dict[str, float]:
    """The median, and how far the epochs are apart."""
    return {
        "tokens_per_s": round(statistics.median(speeds), 1),
        "slowest_epoch": round(min(speeds), 1),
        "fastest_epoch": round(max(speeds), 1),
    }


def where_time_goes(
    config: Dict[str, Any], args: argparse.Namespace, folder: Path
) -> Dict[str, Any]:
    """The shares of the parts of a step, and of the machine's product rate that it reaches."""
    params = Params(json.loads(json.dumps(config)))
    parts_folder = str(folder / "parts")
    trainer = TrainModel.from_params(params, serialization_dir=parts_folder, local_rank=0).trainer
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = trainer.data_loader
    loading_alone, epoch = timed(lambda: list(loader), device)
    for batch in epoch:
        step(trainer, batch, device)
    rate = product_rate(MixedPrecision.used(args.dtype, device), device)
    parts: List[Parts] = []
    needed, batches = 0.0, iter(loader)
    for _ in range(len(loader)):
        loading, batch = timed(lambda: next(batches), device)
        parts.append(step(trainer, batch, device)._replace(loading=loading))
        needed += operations(trainer.model, batch, args)
    sums = Parts(*map(sum, zip(*parts)))
    seconds = sum(sums)
    shares = {f"{name}_share": round(part / seconds, 3) for name, part in sums._asdict().items()}
    tokens = sum(int((batch["windows"]["left_to_right_targets"] > 0).sum()) for batch in epoch)
    return {
        **shares,
        "loader_tokens_per_s": round(tokens / loading_alone),
        "gflop_per_s": round(needed / seconds / 1e9, 1),
        "product_gflop_per_s": round(rate / 1e9, 1),
        "share_of_product_rate": round(needed / seconds / rate, 3),
    }


def step(trainer: Any, batch: TensorDict, device: torch.device) -> Parts:
    """One step, as AllenNLP's trainer makes it."""
    trainer.model.train()
    trainer.optimizer.zero_grad()
    forward, loss = timed(lambda: trainer.batch_outputs(batch, for_training=True)["loss"], device)
    backward, _ = timed(loss.backward, device)
    clipping, _ = timed(trainer.rescale_gradients, device)
    optimizing, _ = timed(trainer.optimizer.step, device)
    return Parts(0.0, forward, backward, clipping, optimizing)


def operations(model: LanguageModel, batch: Any, args: argparse.Namespace) -> float:
    """Operations of the products that a step needs."""
    windows = batch["windows"]
    needed = int(windows["mask"].sum()) * lstm_operations(model.bilm)
    needed += word_operations(model.bilm.token_encoder, windows["characters"])  # type: ignore
    predicted = sum(
        int((windows[f"{direction}_targets"] > 0).sum())
        for direction in ("left_to_right", "right_to_left")
    )
    if args.softmax != "adaptive":
        weight = model.get_parameter("softmax.weight")
        rows = args.samples if args.softmax == "sampled" else weight.size(0)
        needed += 2.0 * predicted * rows * weight.size(1)
    return 3 * needed


if __name__ == "__main__":
    main()
