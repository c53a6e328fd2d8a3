"""
How far the layers of an export are from those that the original implementation computes of the same
biLM and sentences. Runs in an environment of its own:

    python3.11 -m venv runs/bilm_tf
    runs/bilm_tf/bin/pip install -r benchmarks/bilm_tf/requirements.txt
    allennlp elmo-export model.tar.gz runs/official
    allennlp elmo sentences.txt layers.hdf5 --all --options-file runs/official/options.json \
        --weight-file runs/official/weights.hdf5
    runs/bilm_tf/bin/python benchmarks/bilm_tf/vectors.py runs/official sentences.txt layers.hdf5

The folder holds `options.json`, `weights.hdf5` and `vocab.txt`, all of which the original reads.
Both carry the LSTM state from batch to batch.
"""

import argparse
import sys
from pathlib import Path
from typing import Iterator, List

import h5py
import numpy
import tensorflow_1  # noqa: F401
from bilm import Batcher, BidirectionalLanguageModel
from tensorflow.compat import v1 as tensorflow

TOLERANCE = 1e-5
"""The largest difference that a number of a vector may have."""


def main() -> None:
    """Prints the largest difference of each layer; exits with 1 if one is too large."""
    args = parse_arguments()
    largest = numpy.zeros(0)
    num_sentences = 0
    with h5py.File(args.layers) as file:
        for number, layers in enumerate(original_layers(args)):
            differences = numpy.abs(file[str(number)][...] - layers).max(axis=(1, 2))
            # NaN stays NaN, which Python's `max` would lose.
            largest = numpy.maximum(largest, differences) if num_sentences else differences
            num_sentences += 1
    for layer, difference in enumerate(largest):
        print(f"layer {layer}  {difference:.2e}  {num_sentences} sentences")
    sys.exit(0 if num_sentences and numpy.max(largest) <= TOLERANCE else 1)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="options.json, weights.hdf5 and vocab.txt")
    parser.add_argument("sentences", type=Path, help="one a line, tokens between spaces")
    parser.add_argument("layers", type=Path, help="what allennlp elmo --all wrote of them")
    parser.add_argument("--batch-size", type=int, default=64, help="as the export's (default: 64)")
    return parser.parse_args()


def original_layers(args: argparse.Namespace) -> Iterator[numpy.ndarray]:
    """(layers, tokens, 2 dim) of each sentence, by the original implementation."""
    options, weights = args.folder / "options.json", args.folder / "weights.hdf5"
    batcher = Batcher(str(args.folder / "vocab.txt"), 50)
    ids = tensorflow.placeholder("int32", shape=(None, None, 50))
    found = BidirectionalLanguageModel(str(options), str(weights))(ids)
    with tensorflow.Session() as session:
        session.run(tensorflow.global_variables_initializer())
        for batch in batches(args.sentences, args.batch_size):
            values = {ids: batcher.batch_sentences(batch)}
            layers, lengths = session.run([found["lm_embeddings"], found["lengths"]], values)
            for sentence, length in zip(layers, lengths):
                yield sentence[:, :length]


def batches(path: Path, size: int) -> Iterator[List[List[str]]]:
    """The sentences, in their order, as many at a time as the size says."""
    sentences = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    for start in range(0, len(sentences), size):
        yield sentences[start : start + size]


if __name__ == "__main__":
    main()
