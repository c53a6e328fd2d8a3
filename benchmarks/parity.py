"""
How far vectors are from those that the original implementation computed, stage by stage:

    python benchmarks/parity.py folder

The folder is one in the form of AllenNLP's published reference (`test_fixtures/elmo` in its
sources): `options.json`, `lm_weights.hdf5`, `sentences.json` with one list of sentences for each
row of a batch, `lm_embeddings_{0,1,2}.hdf5` with the top layer of each row, state carried from
batch to batch, and `vocab_test.txt` with its token layer in `elmo_token_embeddings.hdf5`.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Iterator, List

import h5py
import numpy
import torch

from elmo_scratch import batch_to_ids, read_official_bilm
from elmo_scratch.modules import BiLm

TOLERANCE = 1e-6
"""What AllenNLP's own tests allow, beside numpy.allclose's relative 1e-5."""


def main() -> None:
    """Prints the largest difference of each stage; exits with 1 if one is too large."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    is_close = True
    for way in ("with gradients", "without", "frozen", "in float64"):
        bilm = read_official_bilm(folder / "options.json", folder / "lm_weights.hdf5")
        bilm.requires_grad_(way != "frozen")
        if way == "in float64":
            bilm.double()
        with torch.set_grad_enabled(way == "with gradients"):
            stages = {
                "token layer": list(token_differences(bilm, folder)),
                "top layer": list(top_differences(bilm, folder)),
            }
        for stage, pairs in stages.items():
            largest = max(float(numpy.abs(ours - theirs).max()) for ours, theirs in pairs)
            close = all(numpy.allclose(ours, theirs, atol=TOLERANCE) for ours, theirs in pairs)
            is_close &= close
            print(f"{way:>14}  {stage:>11}  {largest:.2e}  {'close' if close else 'TOO FAR'}")
    sys.exit(0 if is_close else 1)


def token_differences(bilm: BiLm, folder: Path) -> Iterator[List[numpy.ndarray]]:
    """The token layer of words, and what it should be."""
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8").split("\n")
    with h5py.File(folder / "elmo_token_embeddings.hdf5") as file:
        expected = file["embedding"][...]
    vectors = bilm.token_encoder.encode_words(batch_to_ids([words[: len(expected)]])[0])
    yield [vectors.detach().numpy(), expected]


def top_differences(bilm: BiLm, folder: Path) -> Iterator[List[numpy.ndarray]]:
    """The top layer of each sentence, and what it should be."""
    rows = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    files = [h5py.File(folder / f"lm_embeddings_{number}.hdf5") for number in range(len(rows))]
    for number, batch in enumerate(zip(*rows)):
        ids = batch_to_ids([sentence.split() for sentence in batch])
        top = bilm(ids, (ids > 0).any(dim=-1)).layers[-1].detach().numpy()
        for row, (sentence, file) in enumerate(zip(batch, files)):
            expected = numpy.concatenate(list(file[str(number)][...]), axis=-1)
            yield [top[row, 1 : len(sentence.split()) + 1], expected]


if __name__ == "__main__":
    main()
