"""
What pre-training by each config of training_config/bilm/ takes: parameters, tokens a second and
peak memory of `allennlp train`, on a GPU the GPU's, each config as it is, in a process of its own:

    python benchmarks/configs.py --ag-news train.csv dev.csv --text ptb.train.txt
    python benchmarks/configs.py original --text ptb.train.txt --steps 4

Only a few steps are trained, of a text as long as they need, but with the vocabulary of the whole;
`small` and `original` with as many words as the released models have, and those of fixtures on all
of theirs. Nothing is validated or saved. See benchmarks/README.md for what the numbers mean.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Dict

from allennlp.common import Params
from allennlp.common.params import evaluate_file
from memory import peak_memory_on

ROOT = Path(__file__).parent.parent
CONFIGS = ROOT / "training_config" / "bilm"
FIXTURES = ROOT / "fixtures"
OF_FIXTURES = {
    "fixture": "sentences.txt",
    "fixture_characters": "sentences.txt",
    "fixture_senses": "senses.txt",
}
"""And the text of each that reads one."""

OF_NEWS = ["ag_news", "ag_news_characters", "ag_news_titles"]
OF_TEXT = ["ptb", "small", "original"]
OFFICIAL_WORDS = 793_471
"""Words in the released models' vocabulary, its marks included."""

EPOCHS = 2
"""The first one prepares the kernels; only the last one counts."""


def main() -> None:
    """Prints a table in Markdown."""
    args = parse_arguments()
    if args.measure:
        print(json.dumps(measured(args.measure)))
        return
    print("| config | parameters: biLM + softmax | words | tokens/s | peak memory |")
    print("|---|---:|---:|---:|---:|", flush=True)
    for name in args.names:
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "config.json"
            config.write_text(json.dumps(shortened(name, args, Path(folder))), encoding="utf-8")
            found = in_a_process(config)
        bilm, softmax = (in_millions(found[part]) for part in ("bilm", "softmax"))
        print(
            f"| `{name}` | {bilm} + {softmax} million | {found['words']:,.0f} "
            f"| {found['tokens_per_s']:,.0f} | {found['peak_mib'] / 1024:.1f} GiB |",
            flush=True,
        )


def in_millions(number: float) -> str:
    """With one digit behind the point, or two where else there would be none."""
    return f"{number / 1e6:.{1 if number >= 1e5 else 2}f}"


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [*OF_FIXTURES, *OF_NEWS, *OF_TEXT, "fine_tune"]
    parser.add_argument("names", nargs="*", help=f"of {', '.join(known)} (default: all possible)")
    parser.add_argument(
        "--ag-news", nargs=2, metavar=("TRAIN", "DEV"), help=f"for {', '.join(OF_NEWS)}"
    )
    parser.add_argument("--text", type=Path, help=f"sentences, for {', '.join(OF_TEXT)}, fine_tune")
    parser.add_argument("--bilm", help="an archive, for fine_tune")
    parser.add_argument("--steps", type=int, default=30, help="of an epoch (default: 30)")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    possible = [name for name in known if is_given(name, args)]
    args.names = args.names or possible
    for name in args.names:
        if name not in possible and not args.measure:
            parser.error(f"{name}: no such config, or one that needs --ag-news, --text or --bilm")
    return args


def is_given(name: str, args: argparse.Namespace) -> bool:
    """Whether there is all that a config needs."""
    if name in OF_FIXTURES:
        return True
    if name in OF_NEWS:
        return args.ag_news is not None
    return args.text is not None and (name != "fine_tune" or args.bilm is not None)


def shortened(name: str, args: argparse.Namespace, folder: Path) -> Dict[str, Any]:
    """The config, for a few steps."""
    news = [str(FIXTURES / "news" / part) for part in ("train.csv", "dev.csv")]
    text_file = FIXTURES / "text" / OF_FIXTURES[name] if name in OF_FIXTURES else args.text
    train, dev = args.ag_news or news
    variables = {"AG_NEWS_TRAIN": train, "AG_NEWS_DEV": dev, "WORD_VECTORS": ""}
    variables.update(NEWS_TRAIN=news[0], NEWS_DEV=news[1])
    variables.update(
        {
            f"{text}_{part}": str(text_file)
            for text in ("PTB", "CORPUS")
            for part in ("TRAIN", "DEV")
        }
    )
    variables["BILM_ARCHIVE"] = args.bilm or ""
    config = json.loads(evaluate_file(str(CONFIGS / f"{name}.jsonnet"), ext_vars=variables))
    loader = config["data_loader"]
    if name not in OF_FIXTURES and loader.get("type") == "elmo_scratch_stream":
        positions = loader["batch_size"] * loader["unroll_steps"] * args.steps
        config["train_data_path"] = str(cut(args.text, positions, folder / "text.txt"))
    elif name not in OF_FIXTURES:
        loader["batches_per_epoch"] = args.steps
    if name in ("small", "original"):
        words = released_size_of(args.text, folder / "vocab.txt")
        config["vocabulary"] = {"type": "elmo_scratch_corpus", "vocab_file": str(words)}
    for part in ("validation_data_path", "validation_data_loader"):
        config.pop(part, None)
    trainer = config["trainer"]
    del trainer["validation_metric"]
    trainer.update(num_epochs=EPOCHS, callbacks=[{"type": "elmo_scratch_speed"}])
    trainer["checkpointer"] = {"save_completed_epochs": False}
    return config


def cut(text: Path, positions: int, target: Path) -> Path:
    """The first sentences, as many as the positions that are read need."""
    with open(text, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as kept:
        for line in lines:
            kept.write(line)
            positions -= len(line.split()) + 2
            if positions <= 0:
                return target
    raise SystemExit(f"configs.py: error: {text}: too short for so many steps; lower --steps")


def released_size_of(text: Path, target: Path) -> Path:
    """The words of a text, the frequent ones first, and others up to the released size."""
    counts = Counter(text.read_text(encoding="utf-8").split())
    marks = ["<S>", "</S>", "<UNK>"]
    words = [*marks, *(word for word, _ in counts.most_common() if word.upper() not in marks)]
    words += [f"word{number}" for number in range(OFFICIAL_WORDS - len(words))]
    target.write_text("\n".join(words) + "\n", encoding="utf-8")
    return target


def in_a_process(config: Path) -> Dict[str, float]:
    """What `measured` says."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", str(config)],
        env={**os.environ, "ELMO_SCRATCH_CACHE": str(config.parent / "corpora")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def measured(config: Path) -> Dict[str, float]:
    """Trains, as `allennlp train` does."""
    from allennlp.commands.train import TrainModel
    from allennlp.common.util import import_module_and_submodules

    import_module_and_submodules("elmo_scratch")
    training = TrainModel.from_params(
        params=Params(json.loads(config.read_text(encoding="utf-8"))),
        serialization_dir=str(config.parent / "run"),
        local_rank=0,
    )
    metrics = training.run()
    model = training.model
    softmax = sum(weight.numel() for weight in model.softmax.parameters())
    return {
        "bilm": sum(weight.numel() for weight in model.parameters()) - softmax,
        "softmax": softmax,
        "words": model.vocab.get_vocab_size("tokens"),
        "tokens_per_s": metrics["training_tokens_per_second"],
        "peak_mib": peak_memory_on(next(model.parameters()).device),
    }


if __name__ == "__main__":
    main()
