"""The models of these tests, of every kind that is read, and the vectors of `allennlp elmo`."""

import shutil
from pathlib import Path
from typing import Any, List

import h5py
import numpy

from elmo_scratch import ElmoEmbedder
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.tiny_archives import unpack

OFFICIAL = [
    str(FIXTURES_ROOT / "elmo/residual" / name) for name in ("options.json", "weights.hdf5")
]
"""The files of a biLM of characters."""

GOLDEN = PROJECT_ROOT / "tests" / "golden"
ARCHIVE = str(GOLDEN / "words" / "model.tar.gz")
"""The archive of a biLM of words."""

NUM_LAYERS, WIDTH = 3, 12
"""Of the official files."""

TOUR = [
    line.split() for line in (FIXTURES_ROOT / "text" / "tour.txt").read_text("utf-8").splitlines()
]

KINDS = ("archive", "training", "official", "official_folder")


def model_in(folder: Path, kind: str) -> Any:
    """Copies a model into a folder of its own, and returns what names it."""
    folder.mkdir(exist_ok=True)
    if kind == "training":
        return str(unpack(Path(ARCHIVE), folder / "run"))
    if kind == "archive":
        return shutil.copy(ARCHIVE, folder)
    files = [shutil.copy(file, folder) for file in OFFICIAL]
    return files if kind == "official" else str(folder)


def exported(sentences: List[List[str]], kept: str, folder: Path) -> List[numpy.ndarray]:
    """The vectors that `allennlp elmo --state reset` writes with the official files."""
    text = folder / "text.txt"
    text.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    options_file, weight_file = OFFICIAL
    ElmoEmbedder(options_file, weight_file, state="reset").embed_file(
        text, folder / f"{kept}.hdf5", kept
    )
    with h5py.File(folder / f"{kept}.hdf5") as file:
        return [file[str(number)][...] for number in range(len(sentences))]
