"""
How fast the original implementation trains, by the recipe of the released models: the counterpart
of `benchmarks/train.py` with `sampled`. Runs in the environment that `vectors.py` tells of:

    runs/bilm_tf/bin/python benchmarks/bilm_tf/training.py ptb.train.txt --model small

A token counts once, for both directions. The first steps are left out.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, Dict, Iterator, List

import tensorflow_1  # noqa: F401
from bilm.data import BidirectionalLMDataset, UnicodeCharsVocabulary
from bilm.training import train

FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
SIZES = {"small": (1024, 128, 1), "original": (4096, 512, 2)}
"""Cells, dimensions of their projection, and highway layers."""

STEPS_TO_WARM_UP = 3


class TimedBatches:
    """
    A data set as the original's trainer wants it, that ends after so many batches and notes when
    each was asked for.

    # Parameters

    batches : `BidirectionalLMDataset`
    num_steps : `int`
    """

    def __init__(self, batches: BidirectionalLMDataset, num_steps: int) -> None:
        self.asked_at: List[float] = []
        self._batches = batches
        self._num_steps = num_steps

    def iter_batches(self, batch_size: int, num_steps: int) -> Iterator[Dict[str, Any]]:
        """The data set's batches; `num_steps` are the tokens of a window here."""
        batches = self._batches.iter_batches(batch_size, num_steps)
        for batch in islice(batches, self._num_steps):
            self.asked_at.append(time.perf_counter())
            yield batch
        self.asked_at.append(time.perf_counter())


def main() -> None:
    """Prints the median over steps, as one line of JSON."""
    args = parse_arguments()
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = UnicodeCharsVocabulary(write_vocabulary(args.text, folder), 50)
        shards = BidirectionalLMDataset(str(args.text), vocabulary, shuffle_on_load=True)
        batches = TimedBatches(shards, STEPS_TO_WARM_UP + args.steps)
        train(options_of(args, vocabulary.size), batches, 1, folder, folder)
    starts = batches.asked_at[STEPS_TO_WARM_UP:]
    seconds = statistics.median(end - start for start, end in zip(starts, starts[1:]))
    positions = args.batch_size * args.unroll_steps
    print(json.dumps({"model": args.model, "tokens_per_s": round(positions / seconds)}))


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path, help="sentences, one a line, words between spaces")
    parser.add_argument("--model", choices=sorted(SIZES), default="small")
    parser.add_argument("--samples", type=int, default=1024, help="negatives (default: 1024)")
    parser.add_argument("--batch-size", type=int, default=64, help="(default: 64)")
    parser.add_argument("--unroll-steps", type=int, default=20, help="(default: 20)")
    parser.add_argument("--steps", type=int, default=40, help="to measure (default: 40)")
    return parser.parse_args()


def write_vocabulary(text: Path, folder: str) -> str:
    """The file of the text's words, the most frequent first, as the original wants it."""
    words = Counter(text.read_text(encoding="utf-8").split())
    path = Path(folder) / "vocabulary.txt"
    in_order = ["<S>", "</S>", "<UNK>", *(word for word, _ in words.most_common())]
    path.write_text("\n".join(in_order) + "\n", encoding="utf-8")
    return str(path)


def options_of(args: argparse.Namespace, num_words: int) -> Dict[str, Any]:
    """What the original's `bin/train_elmo.py` sets, with the sizes that are asked for."""
    cells, dim, num_highway = SIZES[args.model]
    return {
        "bidirectional": True,
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 16},
            "filters": FILTERS,
            "max_characters_per_token": 50,
            "n_characters": 261,
            "n_highway": num_highway,
        },
        "lstm": {
            "cell_clip": 3,
            "dim": cells,
            "n_layers": 2,
            "proj_clip": 3,
            "projection_dim": dim,
            "use_skip_connections": True,
        },
        "dropout": 0.1,
        "all_clip_norm_val": 10.0,
        "n_epochs": 10,
        "n_train_tokens": 768_648_884,
        "batch_size": args.batch_size,
        "n_tokens_vocab": num_words,
        "unroll_steps": args.unroll_steps,
        "n_negative_samples_batch": args.samples,
    }


if __name__ == "__main__":
    main()
