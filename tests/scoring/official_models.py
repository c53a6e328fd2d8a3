"""Official files of a tiny language model, the softmax and the vocabulary among them."""

from pathlib import Path
from typing import NamedTuple

import h5py
import numpy

from elmo_scratch.interop import export_bilm
from elmo_scratch.interop.archives.archive import read_language_model
from elmo_scratch.interop.export import OfficialWords


class OfficialModel(NamedTuple):
    """In the order of `SentenceScorer.from_official`."""

    options: Path
    weights: Path
    softmax: Path
    words: Path


def write_softmax(path: Path, weight: numpy.ndarray, bias: numpy.ndarray) -> None:
    """
    A file as the original's `bin/dump_weights.py` writes it without its test for "softmax": shapes
    `(words, dim)` and `(words,)`.
    """
    with h5py.File(path, "w") as file:
        file.create_dataset("softmax/W", data=weight, dtype="float32")
        file.create_dataset("softmax/b", data=bias, dtype="float32")


def official_model(archive: Path, folder: Path) -> OfficialModel:
    """The files of an archive whose softmax is a table of words."""
    export_bilm(archive, folder)
    read = read_language_model(archive)
    rows = OfficialWords.of(read.pretrained.blueprint.words).ids
    path = folder / "softmax_weights.hdf5"
    write_softmax(path, read.softmax["weight"][rows].numpy(), read.softmax["bias"][rows].numpy())
    return OfficialModel(
        folder / "options.json", folder / "weights.hdf5", path, folder / "vocab.txt"
    )
