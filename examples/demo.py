"""
The whole line on the project's fixtures: pre-train a tiny biLM, train one classifier with each of
three mixes of its layers, evaluate them, export the layers of a few sentences, look into them, and
report on all that was trained.

    python examples/demo.py [new folder for its output]

Each step is a command that one would type; its output goes to a log file. It takes about two
minutes on two processor cores. What the demo shows is that every part works. Its scores mean
little: it trains on 240 short texts.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common.util import prepare_environment
from allennlp.evaluation import SimpleEvaluator
from allennlp.models import load_archive

from elmo_scratch import LayerFile, LayerMix, nearest
from elmo_scratch.modules.mixes import TrainableMix

ROOT = Path(__file__).resolve().parent.parent
CONFIGS = ROOT / "training_config"
FIXTURES = ROOT / "fixtures"
DEV = FIXTURES / "news" / "dev.csv"
MIXES = ("trainable", "frozen", "function")
NEWS = {
    f"{name}_{split.upper()}": str(FIXTURES / "news" / f"{split}.csv")
    for name in ("NEWS", "AG_NEWS")
    for split in ("train", "dev")
}
# The configs of ag_news/ are made for 15,872 texts; here there are 240.
TINY = {
    "data_loader.batch_sampler.batch_size": 8,
    "trainer.optimizer.lr": 0.003,
}


SENTENCE = "He paid the money into his bank before noon ."
WORD = "bank"
"""Of fixtures/text/tour.txt, to look at what is near to it."""


class MixResult(NamedTuple):
    """What one mix reached on the dev texts, and what it looks like after training."""

    name: str
    metrics: Dict[str, Any]
    mix: LayerMix


def main() -> None:
    """Runs all steps and prints the summary."""
    runs = ROOT / "runs" / "demo"
    if len(sys.argv) > 1:
        runs = Path(sys.argv[1]).resolve()
        if runs.exists() and (not runs.is_dir() or any(runs.iterdir())):
            sys.exit(f"{runs} is there already: expected a new or an empty folder")
    else:
        shutil.rmtree(runs, ignore_errors=True)
    runs.mkdir(parents=True, exist_ok=True)
    print("Nine commands, about two minutes on two processor cores\n")
    bilm_archive = runs / "bilm" / "model.tar.gz"
    variables = {**NEWS, "BILM_ARCHIVE": str(bilm_archive)}
    os.environ.update(variables)
    for name, value in variables.items():
        print(f"$ export {name}={shlex.quote(os.path.relpath(value))}")
    # Threads cost more than they bring where tensors are tiny.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)

    bilm_config = CONFIGS / "bilm" / "fixture.jsonnet"
    print("Measuring the biLM before it is trained", flush=True)
    with (runs / "untrained.log").open("w", encoding="utf-8") as log, redirect_stderr(log):
        before = untrained_perplexity(bilm_config)
    allennlp(runs, "pre-train", "train", bilm_config, "-s", runs / "bilm")
    after = json.loads((runs / "bilm" / "metrics.json").read_text())["best_validation_perplexity"]

    results = []
    for mix in MIXES:
        config = CONFIGS / "ag_news" / f"elmo_{mix}.jsonnet"
        folder = runs / mix
        allennlp(runs, f"train-{mix}", "train", config, "-s", folder, "-o", json.dumps(TINY))
        archive = folder / "model.tar.gz"
        scores = folder / "dev_metrics.json"
        allennlp(runs, f"evaluate-{mix}", "evaluate", archive, DEV, "--output-file", scores)
        results.append(MixResult(mix, json.loads(scores.read_text()), mix_of(archive)))

    layers = runs / "layers.hdf5"
    tour = FIXTURES / "text" / "tour.txt"
    allennlp(runs, "export", "elmo", tour, layers, "--all", "--weight-file", bilm_archive)
    trained = [runs / name for name in ("bilm", *MIXES)]
    report = runs / "report.html"
    allennlp(runs, "report", "elmo-report", *trained, "-o", report, "--errors", DEV)
    summarise(before, after, results)
    show_neighbours(layers)
    print(f"Report of the trainings: {os.path.relpath(report)}, for a browser")
    print(f"Layers of the sentences: {os.path.relpath(layers)}")
    print(f"Trained models:          {os.path.relpath(runs)}/*/model.tar.gz")
    print(f"Logs of the steps:       {os.path.relpath(runs)}/*.log")


def allennlp(runs: Path, step: str, *arguments: Any) -> None:
    """Runs one command, its output in a log file, and stops the demo if it fails."""
    log = runs / f"{step}.log"
    shown = [os.path.relpath(a) if isinstance(a, Path) else str(a) for a in arguments]
    print(f"$ allennlp {shlex.join(shown)}", flush=True)
    started = time.time()
    with log.open("w", encoding="utf-8") as output:
        command = [sys.executable, "-m", "allennlp", *map(str, arguments)]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        while process.poll() is None:
            if sys.stdout.isatty():
                print(f"\r  {time.time() - started:.0f} s", end="", flush=True)
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)
    if process.returncode != 0:
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-15:])
        sys.exit(
            f"{tail}\n\nThe command failed with status {process.returncode}. Its output is in {log}"
        )
    print(
        f"{chr(13) if sys.stdout.isatty() else ''}  done in {time.time() - started:.0f} s",
        flush=True,
    )


def untrained_perplexity(config: Path) -> float:
    """The perplexity that the language model of a config has on dev before it has seen a word."""
    with tempfile.TemporaryDirectory() as folder:
        params = Params.from_file(str(config))
        prepare_environment(params)  # the seeds that `allennlp train` starts from
        training = TrainModel.from_params(params, serialization_dir=folder, local_rank=0)
        loader = training.trainer._validation_data_loader  # type: ignore[attr-defined]
        return SimpleEvaluator()(training.model, loader)["perplexity"]


def mix_of(archive: Path) -> LayerMix:
    """The mix in a trained classifier."""
    modules = load_archive(archive).model.modules()
    return next(module for module in modules if isinstance(module, LayerMix))


def summarise(before: float, after: float, results: List[MixResult]) -> None:
    """Prints what came out."""
    print(f"\nPerplexity of the biLM on {DEV.name}: {before:.0f} untrained, {after:.0f} trained\n")
    print("| mix       | accuracy | macro F1 | token layer | LSTM 1 | LSTM 2 | gamma |")
    print("|-----------|---------:|---------:|------------:|-------:|-------:|------:|")
    for name, metrics, mix in results:
        token, first, second = mix.shares().tolist()
        gamma = f"{mix.gamma.item():.3f}" if isinstance(mix, TrainableMix) else ""
        print(
            f"| {name:9} | {metrics['accuracy']:8.1%} | {metrics['macro_f1']:8.3f} "
            f"| {token:11.3f} | {first:6.3f} | {second:6.3f} | {gamma:>5} |"
        )
    print(
        "\nA layer's column is its weight in the mix; for `function` the share of the layer "
        "in the\nnorms of the weights that read it.\n"
    )


def show_neighbours(layers: Path) -> None:
    """Prints which words are nearest to one, layer by layer."""
    place = SENTENCE.split().index(WORD)
    with LayerFile(layers) as file:
        print(f'Words nearest to "{WORD}" in "{SENTENCE}":')
        for layer in range(file.facts.layers):
            found = nearest(file, SENTENCE, place, layer, 4, each_word_once=True)
            print(f"  layer {layer}: {', '.join(f'{one.word} {one.cosine:.2f}' for one in found)}")
    print()


if __name__ == "__main__":
    main()
