"""The commands and functions that write files, each with what it starts from and what it makes."""

import io
import json
import multiprocessing
import os
import shutil
import sys
import tarfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Sequence
from unittest.mock import patch

import lmdb
import numpy
import torch
from allennlp import commands
from datasets import IterableDataset

from elmo_scratch import write_official_bilm
from elmo_scratch.data.corpus import PreparedCorpus
from elmo_scratch.data.corpus.shards import data_set_file
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.embedders.layer_cache import FileStore
from elmo_scratch.files.paths import CACHE_VARIABLE, download
from elmo_scratch.integrations.spacy_component import write_copy
from elmo_scratch.interop import read_bilm
from elmo_scratch.interop.archives.weights import read_torch_file
from elmo_scratch.interop.zipped_models import unpacked
from elmo_scratch.report import read_contents, report_of, write_page, write_pdf
from tests import PROJECT_ROOT
from tests.local_server import local_server
from tests.tiny_archives import LINES, WORD_BILM, config_of, write_lines
from tests.tiny_training import logging_as_before

GOLDEN = PROJECT_ROOT / "tests" / "golden"
ARCHIVE, LAYERS = GOLDEN / "characters" / "model.tar.gz", GOLDEN / "layers" / "words.hdf5"
TOUR = GOLDEN / "texts" / "tour.txt"

OFFICIAL_FILES = ("weights.hdf5", "vocab.txt", "options.json")
METRICS, ANSWERS = "metrics.json", "answers.jsonl"
PROJECTOR = ("vectors.tsv", "metadata.tsv", "projector_config.pbtxt")

Read = Callable[[Path], Any]


@dataclass(frozen=True)
class Writer:
    """
    Something that writes files into a folder.

    # Parameters

    run : `Callable[[Path], object]`
        Writes. The folder holds what `prepare` put there.
    underway : `str`
        A regular expression for paths that hold work to go on with, locks and caches. Whether they
        are right shows when the writer goes on.
    incidental : `str`
        A regular expression for paths whose content differs from run to run, such as a log's.
    together : `Sequence[str]`
        Files that belong together, the one that tells of the others last.
    optional : `str`
        A regular expression for files that may be missing after a run without an error.
    """

    run: Callable[[Path], object]
    prepare: Callable[[Path], object] = lambda folder: None
    underway: str = "(?!)"
    incidental: str = "(?!)"
    optional: str = "(?!)"
    together: Sequence[str] = ()
    read: Mapping[str, Read] = field(default_factory=dict)


def allennlp(*words: object) -> None:
    """Runs `allennlp` with these words on its command line."""
    with (
        logging_as_before(),
        patch.object(commands, "import_plugins", lambda: None),
        patch.object(sys, "argv", ["allennlp", *map(str, words)]),
    ):
        commands.main("allennlp")


def older(*names: str) -> Callable[[Path], None]:
    """Puts older files of these names into a folder."""

    def prepare(folder: Path) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(f"the older {name}".encode())

    return prepare


def parts_of_archive(path: Path) -> Dict[str, Any]:
    """The files in an archive, without the times of their packing, and its tensors."""
    with tarfile.open(path) as archive:
        files = [(member, archive.extractfile(member)) for member in archive]
        parts: Dict[str, Any] = {one.name: file.read() for one, file in files if file is not None}
    # A file of PyTorch's holds the name under which it was written.
    parts["weights.th"] = torch.load(io.BytesIO(parts["weights.th"]), weights_only=True)
    return parts


def tensors_of(path: Path) -> Dict[str, Any]:
    """What a file of `torch.save` holds."""
    state: Dict[str, Any] = read_torch_file(path)
    return state


def train(folder: Path) -> None:
    """Starts a training, or goes on with it where it has a checkpoint."""
    config = config_of(folder, bilm=WORD_BILM)
    checkpointer = {"type": "elmo_scratch_whole", "keep_most_recent_by_count": 1}
    config["trainer"].update(checkpointer=checkpointer, callbacks=["elmo_scratch_exact_resume"])
    (folder / "given.json").write_text(json.dumps(config), encoding="utf-8")
    is_begun = any((folder / "run").glob("model_state_*.th"))
    way = ["--recover"] if is_begun else ["--force"]
    allennlp("train", folder / "given.json", "-s", folder / "run", *way)


def export(folder: Path) -> None:
    """Writes layers in parts, with the states between them."""
    model = ["--weight-file", ARCHIVE, "--all", "--batch-size", "3"]
    inside = "elmo_scratch.export"
    with (
        patch(f"{inside}.pipeline.SENTENCES_A_PART", 6),
        patch(f"{inside}.export.SENTENCES_A_PART", 6),
    ):
        allennlp("elmo", TOUR, folder / "layers.hdf5", *model, "--resume", "--overwrite")


def join(folder: Path) -> None:
    """Joins shards and removes them; there is nothing more to do where that was the last time."""
    if any(folder.glob("pooled.hdf5.*-of-*")):
        allennlp("elmo-join", folder / "pooled.hdf5", "--overwrite", "--remove-shards")


def copy_shards(folder: Path) -> None:
    for file in (GOLDEN / "layers").glob("pooled.hdf5.*"):
        shutil.copy(file, folder)


def keep_layers(folder: Path, first: int = 2) -> None:
    """Keeps the layers of a batch of two texts."""
    store = FileStore(str(folder / "layers.lmdb"))
    store.put({bytes(32 * [key]): kept_layers(key) for key in (first, first + 1)})


def prepare_kept(folder: Path) -> None:
    """Keeps those of an earlier batch in another process: LMDB stays open in the one that wrote."""
    process = multiprocessing.get_context("fork").Process(target=keep_layers, args=(folder, 0))
    process.start()
    process.join()


def kept_layers(key: int) -> numpy.ndarray:
    return numpy.full((3, 4, 500), float(key), dtype="<f4")


def layers_kept(path: Path) -> Dict[bytes, bytes]:
    """All that a file of kept layers holds."""
    with lmdb.open(str(path), subdir=False, readonly=True, lock=False) as opened:
        with opened.begin() as transaction:
            return dict(transaction.cursor())


def search(folder: Path) -> None:
    """Goes on with a search whose last training is over, but not noted."""
    given = [folder / "sweep.yaml", folder / "config.json"]
    allennlp("elmo-search", *given, "-s", folder / "found")


def copy_search(folder: Path) -> None:
    shutil.copytree(GOLDEN / "search", folder, dirs_exist_ok=True)


def explore(folder: Path, *words: object) -> None:
    allennlp("elmo-explore", LAYERS, "--overwrite", *words)


class Begun(Exception):
    """Raised in place of a training."""


def begin_own_text(folder: Path) -> None:
    """Holds out a part of a text and chooses settings, without the training."""
    where = "elmo_scratch.commands.elmo_train.run_plainly"
    with suppress(Begun), patch(where, side_effect=Begun):
        allennlp("elmo-train", folder / "text.txt", "-s", folder / "own")


def prepare_text(folder: Path) -> None:
    write_lines(folder / "text.txt", [f"{line} number {n}" for n in range(500) for line in LINES])


def zip_model(folder: Path) -> None:
    with zipfile.ZipFile(folder / "model.zip", "w") as file:
        for name in ("options.json", "weights.hdf5"):
            file.write(GOLDEN / "official" / name, name)


def unpack_zip(folder: Path) -> None:
    """Unpacks it; its place is named by the file's time stamps, and each fault has a copy."""
    with patch("elmo_scratch.interop.zipped_models.stamp_of", lambda path: "the same"):
        unpacked(folder / "model.zip", folder / "zipped")


def predict(folder: Path) -> None:
    given = [GOLDEN / "words" / "model.tar.gz", folder / "lines.jsonl"]
    allennlp("predict", *given, "--output-file", folder / "answers.jsonl", "--silent")


def prepare_predict(folder: Path) -> None:
    older("answers.jsonl")(folder)
    write_lines(folder / "lines.jsonl", [json.dumps({"sentence": line}) for line in LINES])


def evaluate(folder: Path) -> None:
    """Writes metrics and the answer to each text."""
    given = [GOLDEN / "classifiers" / "words.tar.gz", GOLDEN / "texts" / "news_dev.csv"]
    files = ["--output-file", folder / METRICS, "--predictions-output-file", folder / ANSWERS]
    allennlp("evaluate", *given, *files)


def report(folder: Path) -> None:
    """Writes a report of a file of layers as a page and as a PDF."""
    told = report_of(read_contents([LAYERS]))
    write_page(told, folder / "report.html")
    write_pdf(told, folder / "report.pdf")


def fetch(folder: Path) -> None:
    """Fetches a file in several blocks, with what tells whether the server still has the same."""
    with local_server() as server:
        server.files["/weights"] = bytes(range(256)) * 1000
        download(f"{server.address}/weights", folder / "weights.hdf5")


def write_data_set(folder: Path) -> None:
    """Writes a stream to a text file in the folder of prepared corpora."""
    rows = IterableDataset.from_generator(lambda: ({"text": line} for line in LINES))
    with patch.dict(os.environ, {CACHE_VARIABLE: str(folder)}):
        data_set_file(rows)


TENSORS = {r"run/.*\.th": tensors_of, r".*\.tar\.gz": parts_of_archive}

MODEL_FOLDER = ("vocab.txt", "model.safetensors", "README.md", "config.json")

WRITERS: Dict[str, Writer] = {
    "allennlp train": Writer(
        train,
        underway=r".*\.lock|given\.json|text\.txt|run",
        incidental=r"run/(log/.*|log|out\.log|metrics.*\.json|environment\.json|meta\.json)",
        optional=r"run/environment\.json",
        read=TENSORS,
    ),
    "allennlp evaluate": Writer(evaluate, older(METRICS, ANSWERS)),
    "allennlp predict": Writer(predict, prepare_predict),
    "allennlp elmo": Writer(export, older("layers.hdf5"), underway=r"layers\.hdf5\.parts(/.*)?"),
    "allennlp elmo-join": Writer(join, copy_shards, underway=r"pooled\.hdf5\.parts(/.*)?"),
    "allennlp elmo-export": Writer(
        lambda folder: allennlp("elmo-export", ARCHIVE, folder / "out", "--overwrite"),
        older(*(f"out/{name}" for name in OFFICIAL_FILES)),
        together=[f"out/{name}" for name in OFFICIAL_FILES],
    ),
    "allennlp elmo-export --format safetensors": Writer(
        lambda folder: allennlp(
            "elmo-export", ARCHIVE, folder / "out", "--overwrite", "--format", "safetensors"
        ),
        older(*(f"out/{name}" for name in MODEL_FOLDER)),
        together=[f"out/{name}" for name in MODEL_FOLDER],
    ),
    "write_official_bilm": Writer(
        lambda folder: write_official_bilm(read_bilm(ARCHIVE).bilm, folder / "new"),
    ),
    "allennlp elmo-vectors": Writer(
        lambda folder: allennlp(
            *("elmo-vectors", GOLDEN / "texts" / "corpus.txt", folder / "vectors.txt.gz"),
            *("--method", "svd", "--dim", "4", "--min-count", "2", "--overwrite"),
        ),
        older("vectors.txt.gz"),
    ),
    "allennlp elmo-score": Writer(
        lambda folder: allennlp(
            "elmo-score", ARCHIVE, TOUR, "-o", folder / "scores.jsonl", "--overwrite"
        ),
        older("scores.jsonl"),
    ),
    "allennlp elmo-explore -o": Writer(
        lambda folder: explore(folder, "-o", folder / "page.html"), older("page.html")
    ),
    "allennlp elmo-explore --projector": Writer(
        lambda folder: explore(folder, "--projector", folder / "projector"),
        older(*(f"projector/{name}" for name in PROJECTOR)),
        together=[f"projector/{name}" for name in PROJECTOR],
    ),
    "allennlp elmo-search": Writer(
        search,
        copy_search,
        underway=r"found/study\.db(-journal)?",
        incidental=r"found/trial-.*",
    ),
    "allennlp elmo-report": Writer(report, older("report.html", "report.pdf")),
    "allennlp elmo-train": Writer(begin_own_text, prepare_text),
    "prepared corpus": Writer(
        lambda folder: PreparedCorpus.of(str(TOUR), cache_dir=str(folder)),
        underway=r".*\.lock|digests(/.*)?",
    ),
    "kept layers": Writer(
        keep_layers, prepare_kept, underway=r".*-lock", read={r".*\.lmdb": layers_kept}
    ),
    "model in a zip file": Writer(
        unpack_zip,
        zip_model,
        underway=r".*\.lock",
    ),
    "download": Writer(fetch, underway=r"\.weights\.hdf5\..*"),
    "data set": Writer(write_data_set),
    "pipeline of spaCy's": Writer(
        lambda folder: write_copy(
            SentenceLayers.from_pretrained(str(ARCHIVE)), str(ARCHIVE), folder / "copy"
        )
    ),
}
