"""Files that older code wrote load, give the same numbers, and can be continued."""

import importlib.metadata
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List

import h5py
import lmdb
import numpy
import pytest
import torch
from allennlp import commands
from allennlp.common import Params
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_scratch import (
    Elmo,
    LayerFile,
    batch_to_ids,
    read_bilm,
    read_official_bilm,
    write_official_bilm,
)
from tests import PROJECT_ROOT
from tests.golden.reading import (
    batch_digests,
    checksums,
    layers_of,
    predictions,
    stream_loader,
    together,
    words_of,
)
from tests.tiny_training import logging_as_before

GOLDEN = PROJECT_ROOT / "tests" / "golden"
WORDS, CHARACTERS = GOLDEN / "words" / "model.tar.gz", GOLDEN / "characters" / "model.tar.gz"
OFFICIAL = GOLDEN / "official"
OFFICIAL_FILES = (OFFICIAL / "options.json", OFFICIAL / "weights.hdf5")
TOUR, CORPUS, HELDOUT = (GOLDEN / "texts" / f"{name}.txt" for name in ("tour", "corpus", "heldout"))

SOFTMAX = {"bias", "weight"}
"""The tensors of the softmax `full`."""

Allennlp = Callable[..., None]


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths inside the golden files start from the root of the checkout."""
    monkeypatch.chdir(PROJECT_ROOT)


@pytest.fixture
def allennlp(monkeypatch: pytest.MonkeyPatch) -> Allennlp:
    """Runs `allennlp` with these words on its command line."""
    # Other plugins have nothing to add, and importing them takes long.
    monkeypatch.setattr(commands, "import_plugins", lambda: None)

    def run(*words: Any) -> None:
        monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, words)])
        with logging_as_before():
            commands.main("allennlp")

    return run


def expected(folder: str, name: str = "expected") -> Dict[str, numpy.ndarray]:
    with numpy.load(GOLDEN / folder / f"{name}.npz") as arrays:
        return dict(arrays)


def expected_json(folder: str) -> Any:
    return json.loads((GOLDEN / folder / "expected.json").read_text(encoding="utf-8"))


def assert_close(found: Any, wanted: Any, tolerance: float = 1e-6) -> None:
    numpy.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def contents(folder: Path) -> Dict[str, Any]:
    """For each file of a folder what changes when it is written anew."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in files
    }


def tensors(weights: Path) -> Dict[str, Any]:
    """All numbers of an HDF5 file, by their names."""
    found = {}
    with h5py.File(weights) as file:
        file.visititems(
            lambda name, item: found.update({name: item[()]} if hasattr(item, "dtype") else {})
        )
    return found


def assert_same_official_files(folder: Path, wanted: Path) -> None:
    options = [json.loads((one / "options.json").read_bytes()) for one in (folder, wanted)]
    assert options[0] == options[1]
    found, stored = tensors(folder / "weights.hdf5"), tensors(wanted / "weights.hdf5")
    assert stored and found.keys() == stored.keys()
    for name, numbers in stored.items():
        assert numpy.array_equal(found[name], numbers), name


def test_no_file_has_been_rewritten() -> None:
    listed = (GOLDEN / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    folders = [path for path in GOLDEN.iterdir() if path.is_dir() and path.name != "__pycache__"]
    there = [line for folder in folders for line in checksums(folder)]
    assert sorted(there) == sorted(listed)


# Archives and official files.


@pytest.mark.parametrize("folder", ["words", "characters"])
def test_an_archive_gives_the_same_layers(folder: str) -> None:
    archive = GOLDEN / folder / "model.tar.gz"
    assert_close(layers_of(TOUR, weight_file=archive), expected(folder)["layers"])


@pytest.mark.parametrize("name", ["archive", "official"])
def test_an_archive_of_a_started_training_gives_the_same_layers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The files that it started from can't be found from there.
    monkeypatch.chdir(tmp_path)
    archive = GOLDEN / "started" / f"{name}.tar.gz"
    assert_close(layers_of(TOUR, weight_file=archive), expected("started")[name])


@pytest.mark.parametrize("name", ["words", "characters"])
def test_the_export_of_an_archive_is_the_same(
    name: str, allennlp: Allennlp, tmp_path: Path
) -> None:
    allennlp("elmo-export", GOLDEN / name / "model.tar.gz", tmp_path / "exported")
    wanted = GOLDEN / "exported" / name
    assert_same_official_files(tmp_path / "exported", wanted)
    words = [(folder / "vocab.txt").read_bytes() for folder in (tmp_path / "exported", wanted)]
    assert words[0] == words[1]


def test_an_export_gives_the_layers_of_its_archive() -> None:
    options, weights = (
        GOLDEN / "exported" / "characters" / name for name in ("options.json", "weights.hdf5")
    )
    layers = layers_of(TOUR, options_file=options, weight_file=weights)
    assert_close(layers, expected("characters")["layers"])


@pytest.mark.parametrize("name", ["words", "characters"])
def test_a_model_folder_gives_the_layers_of_its_archive(name: str, tmp_path: Path) -> None:
    folder = GOLDEN / "folders" / name
    assert_close(layers_of(TOUR, weight_file=folder), expected(name)["layers"])
    read = read_bilm(folder, with_softmax=True)
    assert read.softmax.config == {"type": "full"} and set(read.softmax.tensors) == SOFTMAX


def test_a_model_folder_with_mixes_gives_the_same_vectors() -> None:
    elmo = Elmo.from_pretrained(GOLDEN / "folders" / "elmo").eval()
    with torch.no_grad():
        mixed = elmo(batch_to_ids(words_of(TOUR)))["elmo_representations"]
    assert_close(torch.stack(mixed), expected("folders")["mixed"])


def test_official_files_give_the_same_layers() -> None:
    options, weights = OFFICIAL_FILES
    wanted = expected("official")
    assert_close(layers_of(TOUR, options_file=options, weight_file=weights), wanted["layers"])
    elmo = Elmo(str(options), str(weights), 1, dropout=0)
    with torch.no_grad():
        mixed = elmo(batch_to_ids(words_of(TOUR)))["elmo_representations"][0]
    assert_close(mixed, wanted["mixed"])


def test_official_files_with_idle_projections_give_the_same_layers() -> None:
    options, weights = (GOLDEN / "unprojected" / name for name in ("options.json", "weights.hdf5"))
    layers = layers_of(TOUR, options_file=options, weight_file=weights)
    assert_close(layers, expected("unprojected")["layers"])


@pytest.mark.parametrize(
    "folder", ["official", "unprojected", "exported/words", "exported/characters"]
)
def test_official_files_are_written_as_they_were(folder: str, tmp_path: Path) -> None:
    files = (GOLDEN / folder / name for name in ("options.json", "weights.hdf5"))
    write_official_bilm(read_official_bilm(*files), tmp_path)
    assert_same_official_files(tmp_path, GOLDEN / folder)


# Layer files.

EXPORT = ("--all", "--state", "reset", "--weight-file", WORDS)


def test_a_file_of_layers_holds_those_of_its_archive() -> None:
    sentences = [" ".join(words) for words in words_of(TOUR)]
    with LayerFile(GOLDEN / "layers" / "words.hdf5") as layers:
        assert [sentence for sentence, _ in layers.sentences()] == sentences
        found = [layers[sentence] for sentence in sentences]
        assert all(map(numpy.array_equal, found, layers[:]))
        assert (layers.facts.layers, layers.facts.width) == (3, 8)
    assert_close(numpy.concatenate(found, axis=1), expected("words")["layers"])


def test_a_file_of_layers_is_written_as_it_was(allennlp: Allennlp, tmp_path: Path) -> None:
    allennlp("elmo", TOUR, tmp_path / "layers.hdf5", *EXPORT)
    with (
        h5py.File(tmp_path / "layers.hdf5") as found,
        h5py.File(GOLDEN / "layers" / "words.hdf5") as wanted,
    ):
        # New files may hold more.
        assert dict(found.attrs).items() >= dict(wanted.attrs).items()
        assert list(found) == list(wanted)
        assert list(found["sentence_to_index"]) == list(wanted["sentence_to_index"])
        for number in range(len(words_of(TOUR))):
            assert_close(found[str(number)], wanted[str(number)])


def test_a_file_of_layers_that_is_whole_is_known_to_be(allennlp: Allennlp, tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "layers" / "words.hdf5", tmp_path / "layers.hdf5")
    before = contents(tmp_path)
    allennlp("elmo", TOUR, tmp_path / "layers.hdf5", *EXPORT, "--resume")
    assert contents(tmp_path) == before


def test_shards_are_joined(allennlp: Allennlp, tmp_path: Path) -> None:
    shards = [f"pooled.hdf5.{number}-of-2" for number in (1, 2)]
    for shard in shards:
        shutil.copy(GOLDEN / "layers" / shard, tmp_path)
    allennlp("elmo-join", tmp_path / "pooled.hdf5")
    sentences = words_of(TOUR)
    starts = numpy.cumsum([0, *map(len, sentences)])
    layers = expected("official")["layers"]
    with LayerFile(tmp_path / "pooled.hdf5") as pooled:
        assert len(pooled) == len(sentences)
        for words, start, stop in zip(sentences, starts, starts[1:]):
            mean = layers[:, start:stop].mean(axis=(0, 1))
            assert_close(pooled[" ".join(words)], mean, tolerance=2e-3)  # float16


def test_an_export_that_was_stopped_goes_on(allennlp: Allennlp, tmp_path: Path) -> None:
    parts = GOLDEN / "layers" / "unfinished.hdf5.parts"
    shutil.copytree(parts, tmp_path / "layers.hdf5.parts")
    model = ("--weight-file", CHARACTERS, "--all", "--batch-size", "3")
    allennlp("elmo", TOUR, tmp_path / "layers.hdf5", *model, "--resume")
    assert_close(together(tmp_path / "layers.hdf5"), expected("layers")["unfinished"])
    # The parts were copied, not computed anew.
    done = sorted(parts.glob("*.hdf5"))
    assert len(done) == 2
    with h5py.File(tmp_path / "layers.hdf5") as file:
        for path in done:
            with h5py.File(path) as part:
                for key, layers in part.items():
                    assert numpy.array_equal(file[key], layers)


# Tasks.


@pytest.mark.parametrize("name", ["words", "characters", "official", "layer_file"])
def test_a_classifier_predicts_the_same(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "layer_file":
        # The archive stands alone: the files of the biLM can't be found from there.
        monkeypatch.chdir(tmp_path)
    archive = GOLDEN / "classifiers" / f"{name}.tar.gz"
    found = predictions(archive, GOLDEN / "texts" / "news_dev.csv")
    wanted = expected_json("classifiers")[name]
    assert len(found) == len(wanted) == 8
    for one, other in zip(found, wanted):
        assert one == pytest.approx(other, abs=1e-6)


def entries(path: Path) -> Dict[bytes, bytes]:
    """What an LMDB database holds."""
    with lmdb.open(str(path), subdir=False) as environment, environment.begin() as transaction:
        return dict(transaction.cursor())


def test_kept_layers_stay_and_change_nothing(tmp_path: Path) -> None:
    path = Path(shutil.copy(GOLDEN / "kept_layers" / "layers.lmdb", tmp_path))
    before = entries(path)
    assert len(before) == len(words_of(TOUR))
    embedder = TokenEmbedder.from_params(
        Params(
            {
                "type": "elmo_scratch",
                "pretrained_file": str(CHARACTERS),
                "keep_layers": {"type": "file", "path": str(path)},
            }
        ),
        vocab=Vocabulary(),
    )
    with torch.no_grad():
        mixed = embedder(batch_to_ids(words_of(TOUR)))
    assert_close(mixed, expected("kept_layers")["mixed"])
    # Code that computes in another way may keep its own layers beside them.
    after = entries(Path(shutil.copy(path, tmp_path / "copy.lmdb")))
    assert after.items() >= before.items()


def test_a_language_model_starts_from_static_vectors() -> None:
    file = GOLDEN / "vectors" / "svd.txt"
    (num_words, dim), *rows = [line.split() for line in file.read_text("utf-8").splitlines()]
    vocab = Vocabulary.from_params(
        Params({"type": "elmo_scratch_corpus", "data_path": str(CORPUS), "min_count": 2})
    )
    bilm = {"token_encoder": {"type": "word", "dim": int(dim)}, "cell_size": 5}
    model = Model.from_params(
        Params({"type": "elmo_scratch_bilm", "bilm": bilm, "pretrained_file": str(file)}),
        vocab=vocab,
    )
    (table,) = [
        weight for name, weight in model.named_parameters() if name.startswith("bilm.token_encoder")
    ]
    assert len(rows) == int(num_words) > 50
    for word, *numbers in rows:
        found = table[vocab.get_token_index(word)].detach()
        assert_close(found, numpy.array(numbers, dtype="float32"))


# Corpora, trainings and searches.


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of corpora. Its keys depend on the version of spaCy, which is set back."""
    shutil.copytree(GOLDEN / "corpora", tmp_path / "corpora")
    (tmp_path / "corpora" / "expected.json").unlink()
    monkeypatch.setenv("ELMO_SCRATCH_CACHE", str(tmp_path / "corpora"))
    distribution, spacy = importlib.metadata.distribution, expected_json("corpora")["spacy"]
    monkeypatch.setattr(
        importlib.metadata,
        "distribution",
        lambda name: SimpleNamespace(version=spacy) if name == "spacy" else distribution(name),
    )
    return tmp_path / "corpora"


@pytest.mark.parametrize(
    "name, text, settings",
    [
        ("white_space", CORPUS, {}),
        ("spacy_blank", HELDOUT, {"tokenizer": {"type": "spacy_blank"}, "max_tokens": 9}),
    ],
)
def test_a_prepared_corpus_is_taken_as_it_is(
    name: str, text: Path, settings: Dict[str, Any], prepared: Path
) -> None:
    before = contents(prepared)
    batches = batch_digests(stream_loader(text, **settings))
    assert batches == expected_json("corpora")["batches"][name]
    # `digests` remembers the time stamps of texts.
    after = {
        name: found
        for name, found in contents(prepared).items()
        if "digests" not in Path(name).parts
    }
    assert after == before


@pytest.mark.parametrize("name", ["words", "characters"])
def test_a_training_that_was_stopped_goes_on(name: str, allennlp: Allennlp, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(GOLDEN / "stopped" / name, run)
    before = contents(run)["metrics_epoch_0.json"]
    allennlp("train", run / "config.json", "-s", run, "--recover")
    # It went on: a training that starts again from nothing ends in the same weights.
    assert contents(run)["metrics_epoch_0.json"] == before
    weights, wanted = torch.load(run / "best.th", weights_only=True), expected("stopped", name)
    assert wanted and weights.keys() == wanted.keys()
    for key, numbers in wanted.items():
        assert_close(weights[key], numbers, tolerance=1e-5)
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    for key, value in expected_json("stopped")[name].items():
        assert metrics[key] == pytest.approx(value, rel=1e-5)


def test_a_search_that_was_stopped_goes_on(
    allennlp: Allennlp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    pytest.importorskip("optuna")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("all trainings are over")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    found, search = tmp_path / "found", GOLDEN / "search"
    shutil.copytree(search / "found", found)
    allennlp("elmo-search", search / "sweep.yaml", search / "config.json", "-s", found)
    assert json.loads((found / "best.json").read_bytes()) == expected_json("search")
    trials: List[str] = [line for line in capsys.readouterr().out.splitlines() if "adam" in line]
    assert sorted(line.split()[1] for line in trials) == ["0", "1"]
    assert not [line for line in trials if "failed" in line]
    # The training that had not been noted has its archive now.
    archive = layers_of(TOUR, weight_file=found / "trial-1" / "model.tar.gz")
    assert archive.shape == (2, sum(map(len, words_of(TOUR))), 8)
