"""
How fast a corpus is prepared, and how much memory that takes, in a process of its own:

    python benchmarks/corpus.py --tokens 20000000 --shards 4
    python benchmarks/corpus.py --text wiki.train.tokens
    python benchmarks/corpus.py --tokens 1000000000 --shards 16 --train 500

Without `--text` the words are random, their frequencies those of Zipf's law. `--train` then trains
the small model on it for some steps, in another process, for the memory that takes. See
benchmarks/README.md for what the lines mean.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

import numpy
from allennlp.common import Params
from allennlp.common.params import evaluate_file
from memory import peak_memory

from elmo_scratch.data.corpus import PreparedCorpus

CONFIG = Path(__file__).parent.parent / "training_config" / "bilm" / "small.jsonnet"
SIZES = {
    "vocabulary": {"max_size": 100_000, "min_count": 1},
    "data_loader": {"batch_size": 64},
    "model": {"softmax": {"type": "sampled", "num_samples": 1024}},
}
"""What `--train` changes of the config."""

STEPS_A_READING = 100
"""After so many steps of a training the peak of its memory is read."""

EXPONENT = 1.05
WORDS_PER_SENTENCE = 25
TOKENS_AT_ONCE = 2**20


def main() -> None:
    """Prints one line of JSON, with `--train` two."""
    args = parse_arguments()
    if args.prepare:
        print(json.dumps(measured(args.prepare, args.cache)))
        return
    if args.train_on:
        print(json.dumps(trained(args.train_on, args.cache, args.train)))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        shards = [str(path) for path in args.text or write_shards(Path(folder), args)]
        command = [sys.executable, __file__, "--cache", f"{folder}/cache"]
        subprocess.run([*command, "--prepare", *shards], check=True)
        if args.train:
            command += ["--train", str(args.train), "--train-on", *shards]
            subprocess.run(command, check=True)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=20_000_000, help="(default: 20000000)")
    parser.add_argument("--shards", type=int, default=4, help="(default: 4)")
    parser.add_argument("--words", type=int, default=1_000_000, help="to draw (default: 1000000)")
    parser.add_argument("--text", type=Path, nargs="+", help="files to prepare instead")
    parser.add_argument("--folder", help="where to write what is removed again (default: /tmp)")
    parser.add_argument("--train", type=int, default=0, help="steps to train (default: none)")
    parser.add_argument("--prepare", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--train-on", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--cache", help=argparse.SUPPRESS)
    return parser.parse_args()


def write_shards(folder: Path, args: argparse.Namespace) -> List[Path]:
    """Random text."""
    rng = numpy.random.default_rng(0)
    words = spelled_words(args.words, rng)
    shares = numpy.cumsum(1 / numpy.arange(1, args.words + 1) ** EXPONENT)
    shares /= shares[-1]
    paths = [folder / f"shard-{number:04}.txt" for number in range(args.shards)]
    for path in paths:
        with open(path, "w", encoding="utf-8") as file:
            left = args.tokens // args.shards
            while left:
                drawn = numpy.searchsorted(shares, rng.random(min(left, TOKENS_AT_ONCE)))
                left -= len(drawn)
                file.writelines(sentences(words[drawn], rng))
    return paths


def spelled_words(number: int, rng: numpy.random.Generator) -> numpy.ndarray:
    """Shape `(words,)`: distinct random words, the shorter ones first."""
    letters = numpy.array(list("abcdefghijklmnopqrstuvwxyz"))
    lengths = numpy.sort(2 + rng.poisson(5, number))
    spelled = ("".join(letters[rng.integers(26, size=length)]) for length in lengths)
    return numpy.array([f"{word}{place % 97}" for place, word in enumerate(spelled)], dtype=object)


def sentences(words: numpy.ndarray, rng: numpy.random.Generator) -> Iterator[str]:
    """Lines of varied lengths."""
    start = 0
    while start < len(words):
        end = start + 1 + int(rng.integers(2 * WORDS_PER_SENTENCE))
        yield " ".join(words[start:end]) + "\n"
        start = end


def measured(shards: List[str], cache: str) -> Dict[str, float]:
    """Seconds and memory of the first start, of the second, and of reading all tokens once."""
    before = peak_memory()
    started, cpu_before = time.perf_counter(), time.process_time()
    corpus = PreparedCorpus.of(shards, cache_dir=cache)
    prepared, cpu_after = time.perf_counter(), time.process_time()
    memory = peak_memory()
    PreparedCorpus.of(shards, cache_dir=cache)
    found = time.perf_counter()
    for first in range(0, len(corpus.tokens), TOKENS_AT_ONCE):
        corpus.tokens[first : first + TOKENS_AT_ONCE].max()
    read = time.perf_counter()
    return {
        "tokens": corpus.audit.tokens,
        "distinct_words": corpus.audit.distinct_words,
        "megabytes": round(corpus.audit.bytes_read / 1e6, 1),
        "seconds": round(prepared - started, 2),
        "cpu_seconds": round(cpu_after - cpu_before, 2),
        "tokens_per_s": round(corpus.audit.tokens / (prepared - started)),
        "second_start_s": round(found - prepared, 3),
        "read_tokens_per_s": round(corpus.audit.tokens / (read - found)),
        "peak_mib": round(memory),
        "peak_mib_before": round(before),
        "cores": os.cpu_count() or 0,
    }


def trained(shards: List[str], cache: str, steps: int) -> Dict[str, Any]:
    """Tokens a second of one direction and peak memory of the first steps of a training."""
    from allennlp.commands.train import TrainModel
    from allennlp.training import TrainerCallback

    class Enough(Exception):
        """As many steps as were asked for."""

    @TrainerCallback.register("readings_of_memory")
    class Readings(TrainerCallback):
        """Reads the peak of the memory now and then, and ends the training."""

        def on_batch(
            self,
            trainer: Any,
            batch_inputs: Any,
            batch_outputs: List[Dict[str, Any]],
            batch_metrics: Any,
            epoch: int,
            batch_number: int,
            is_training: bool,
            is_primary: bool = True,
            batch_grad_norm: Optional[float] = None,
            **kwargs: Any,
        ) -> None:
            nonlocal tokens
            tokens += sum(int(outputs["num_tokens"]) for outputs in batch_outputs)
            done = trainer._total_batches_completed
            if done % STEPS_A_READING == 0 or done == steps:
                peaks[done] = round(peak_memory())
            if done == steps:
                raise Enough

    os.environ["ELMO_SCRATCH_CACHE"] = cache
    config = json.loads(evaluate_file(str(CONFIG), ext_vars={"CORPUS_TRAIN": "", "CORPUS_DEV": ""}))
    config["train_data_path"] = config["vocabulary"]["data_path"] = shards
    del config["validation_data_path"], config["validation_data_loader"]
    del config["trainer"]["validation_metric"]
    for part, settings in SIZES.items():
        config[part].update(settings)
    config["trainer"]["callbacks"] = ["readings_of_memory"]
    peaks: Dict[int, int] = {}
    tokens = 0
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        training = TrainModel.from_params(
            params=Params(config), serialization_dir=folder, local_rank=0
        )
        ready = time.perf_counter()
        try:
            training.run()
        except Enough:
            pass
    return {
        "seconds_to_start": round(ready - started, 2),
        "tokens_per_s": round(tokens / (time.perf_counter() - ready)),
        "peak_mib_after_steps": peaks,
    }


if __name__ == "__main__":
    main()
