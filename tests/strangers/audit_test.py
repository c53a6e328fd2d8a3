"""An archive, a folder or a file from a stranger is data, as Python's own audit events tell."""

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence

import h5py
import pytest
from allennlp import commands
from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import load_archive

from elmo_scratch import ElmoEmbedder, SentenceScorer
from elmo_scratch.interop import LayerFile, export_bilm, read_bilm
from elmo_scratch_compat.strangers import IMPORTABLE
from tests.strangers.hostile_archives import (
    CHARACTERS,
    GOLDEN,
    WORDS,
    Change,
    hostile,
    with_config,
    with_text,
    with_weights,
)

PROCESSES = ("os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "pty.", "subprocess.")
NETWORK = ("ftplib.", "http.", "socket.", "urllib.")
CODE = ("pickle.find_class",)
CHANGES = ("os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "shutil.")

_heard: List[str] = []
_places: List[Path] = []


def _hear(event: str, arguments: Any) -> None:
    """Notes what no reader of files from others may do, while `audited` runs."""
    if not _places:
        return
    if event == "import":
        if arguments[0].partition(".")[0] not in IMPORTABLE:
            _heard.append(f"import {arguments[0]}")
    elif event.startswith((*PROCESSES, *NETWORK, *CODE)):
        _heard.append(f"{event} {arguments}")
    elif event == "open" and isinstance(arguments[0], str):
        path, mode, flags = arguments
        if (flags or 0) & 0o3 and not _is_inside(path):
            _heard.append(f"written {path} {mode}")
    elif event.startswith(CHANGES):
        path, *_, folder = (*arguments, -1) if len(arguments) == 1 else arguments
        # Removing a tree, Python names files by their folder's number.
        is_numbered = event.startswith("os.") and isinstance(folder, int) and folder >= 0
        start = os.readlink(f"/proc/self/fd/{folder}") if is_numbered else ""
        # Python also asks for folders that are there.
        is_there = event == "os.mkdir" and os.path.isdir(path)
        if not is_there and not _is_inside(Path(start, path)):
            _heard.append(f"{event} {arguments}")


def _is_inside(path: Any) -> bool:
    return any(Path(path).absolute().is_relative_to(place) for place in _places)


sys.addaudithook(_hear)  # for the rest of the process: there is no way to remove one


@contextmanager
def audited(*places: Path) -> Iterator[List[str]]:
    """Yields what is heard in the block; below `places` files may be written."""
    before = {*sys.modules}
    _heard.clear()
    _places.extend(places)
    try:
        yield _heard
    finally:
        _places.clear()
        # `importlib.import_module` raises no event.
        for name in sorted({*sys.modules} - before):
            if name.partition(".")[0] not in IMPORTABLE and f"import {name}" not in _heard:
                _heard.append(f"import {name}")


READERS = [
    lambda source, _: read_bilm(source, with_softmax=True),
    lambda source, _: ElmoEmbedder(None, str(source), state="reset").embed_sentence(
        ["the", "river"]
    ),
    lambda source, target: export_bilm(source, target, overwrite=True),
    lambda source, _: list(SentenceScorer.from_pretrained(source).score([["the", "river"]])),
    lambda source, _: load_archive(source),
]

PROGRAM = {"type": "antigravity.x"}
HOSTILE = [
    with_config(dataset_reader=PROGRAM),
    with_config(dataset_reader={"type": "venv.__main__.x"}),
    with_config(dataset_reader__tokenizer={"type": "unittest.__main__.x"}),
    with_config(dataset_reader__tokenizer={"type": "spacy", "language": "pip"}),
    with_config(dataset_reader__token_indexers={"tokens": {"type": "idlelib.idle.x"}}),
    with_config(vocabulary={"type": "test.autotest.x"}),
    with_config(model__bilm__token_encoder={"type": "pydoc.x"}),
    with_config(model__softmax={"type": "turtledemo.__main__.x"}),
    with_config(validation_dataset_reader=PROGRAM),
    with_text("config.json", b'importstr "/etc/hostname"'),
    with_text("vocabulary/tokens.txt", b"\xff"),
    with_weights(lambda tensors: {**tensors, 3: 4}),
]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Lets the package import what it imports when it is first used."""
    for archive in (CHARACTERS, WORDS):
        for read in READERS:
            read(archive, tmp_path_factory.mktemp("used"))


@pytest.fixture
def places(used: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> List[Path]:
    """Folders for the output, for temporary files, and for the files of strangers."""
    found = [tmp_path / name for name in ("target", "temporary", "strangers")]
    for place in found:
        place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(found[1]))
    return found


def test_reading_what_is_well_formed_does_nothing_else(places: List[Path]) -> None:
    target, _, strangers = places
    sources = [CHARACTERS, WORDS]
    sources += [hostile(strangers / name, lambda _: None).with_name("model") for name in "ab"]
    with audited(*places) as heard:
        for source in sources:
            for read in READERS:
                read(source, target)
        for folder in ("characters", "words"):
            read_bilm(GOLDEN / "folders" / folder)
        read_bilm(GOLDEN / "official" / "weights.hdf5", GOLDEN / "official" / "options.json")
        with LayerFile(GOLDEN / "layers" / "words.hdf5") as layers:
            assert len(list(layers.keys())) == len(layers)
    assert heard == []


def test_reading_what_is_hostile_does_nothing_either(places: List[Path]) -> None:
    target, temporary, strangers = places
    archives = [hostile(strangers / str(number), change) for number, change in enumerate(HOSTILE)]
    num_refused = 0
    with audited(*places) as heard:
        for archive in archives:
            for read in READERS:
                try:
                    read(archive, target)
                except ConfigurationError:
                    num_refused += 1
    assert heard == []
    assert num_refused > 3 * len(archives)
    assert list(temporary.iterdir()) == []


Words = Callable[[Path, Path], List[Any]]
"""The words of a command line, by what it reads and the folder that it may write to."""

TEXT = "the river rose\n"
ANSWERED = '{"sentence": "the river"}\n'

COMMANDS: Dict[str, Words] = {
    "elmo": lambda source, target: [
        *(target / "text.txt", target / "layers.hdf5", "--all", "--overwrite"),
        *("--weight-file", source),
    ],
    "elmo-explore": lambda source, target: [
        *(target / "text.txt", "--weight-file", source, "-o", target / "page.html", "--overwrite")
    ],
    "elmo-export": lambda source, target: [source, target / "exported", "--overwrite"],
    "elmo-score": lambda source, target: [
        *(source, target / "text.txt", "-o", target / "scores.jsonl", "--overwrite")
    ],
    "evaluate": lambda source, target: [
        *(source, target / "text.txt", "--output-file", target / "metrics.json")
    ],
    "predict": lambda source, target: [
        *(source, target / "asked.jsonl", "--output-file", target / "answers.jsonl", "--silent")
    ],
}
"""What reads an archive."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, places: List[Path]) -> Callable[..., str]:
    """Runs a command in the folder for the output, and returns why it was refused, if it was."""
    target = places[0]
    (target / "text.txt").write_text(TEXT, "utf-8")
    (target / "asked.jsonl").write_text(ANSWERED, "utf-8")
    monkeypatch.chdir(target)
    # Other plugins are no part of this package.
    monkeypatch.setattr(commands, "import_plugins", lambda: None)

    def run(name: str, words: List[Any]) -> str:
        monkeypatch.setattr(sys, "argv", ["allennlp", name, *map(str, words)])
        try:
            commands.main("allennlp")
        except SystemExit as stop:
            assert isinstance(stop.code, str) and "\n" not in stop.code
            return stop.code
        return ""

    return run


def hear_archives(
    name: str, changes: Sequence[Change], run: Callable[..., str], places: List[Path]
) -> int:
    """Lets a command read archives under the hook, and returns how many it refused."""
    target, temporary, strangers = places
    words = COMMANDS[name]
    assert not run(name, words(WORDS, target))  # what is imported when it first runs
    archives = [hostile(strangers / str(number), change) for number, change in enumerate(changes)]
    with audited(*places) as heard:
        assert not run(name, words(WORDS, target))
        num_refused = sum(run(name, words(archive, target)) != "" for archive in archives)
    assert heard == []
    assert list(temporary.iterdir()) == []
    return num_refused


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_does_nothing_else_with_an_archive(
    name: str, run: Callable[..., str], places: List[Path]
) -> None:
    assert hear_archives(name, HOSTILE[::6], run, places) == 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_do_nothing_else_with_other_archives(
    name: str, run: Callable[..., str], places: List[Path]
) -> None:
    assert hear_archives(name, HOSTILE, run, places) > 8


SWEEP = """
method: random
metric: {name: validation_loss, goal: minimize}
parameters: {trainer.optimizer.lr: {value: !!python/object/apply:os.system ["touch ran"]}}
"""


def a_sweep(target: Path) -> List[Any]:
    (target / "sweep.yaml").write_text(SWEEP, "utf-8")
    (target / "config.json").write_text("{}", "utf-8")
    return ["elmo-search", "sweep.yaml", "config.json", "-s", "found"]


def shards(target: Path) -> List[Any]:
    """Files of layers, of which one leads to another file."""
    for shard in (GOLDEN / "layers").glob("pooled.hdf5.*"):
        shutil.copy(shard, target)
    with h5py.File(target / "pooled.hdf5.1-of-2", "a") as file:
        file["999"] = h5py.ExternalLink(str(GOLDEN / "layers" / "words.hdf5"), "0")
    return ["elmo-join", "pooled.hdf5"]


def a_file_of_layers(target: Path) -> List[Any]:
    shutil.copy(GOLDEN / "layers" / "words.hdf5", target)
    with h5py.File(target / "words.hdf5", "a") as file:
        del file["0"]
        file["0"] = h5py.ExternalLink(str(GOLDEN / "layers" / "words.hdf5"), "0")
    return ["elmo-explore", "words.hdf5", "-o", "page.html"]


@pytest.mark.parametrize(
    "make, told",
    [
        (a_sweep, "could not determine a constructor"),
        (shards, "it is a link"),
        (a_file_of_layers, "it is a link"),
    ],
)
def test_a_command_refuses_a_file_and_does_nothing_else(
    make: Callable[[Path], List[Any]], told: str, run: Callable[..., str], places: List[Path]
) -> None:
    name, *words = make(places[0])
    run(name, words)
    with audited(*places) as heard:
        assert told in run(name, words)
    assert heard == []
    assert not (places[0] / "ran").exists()


@pytest.mark.exhaustive  # drawing takes seconds
def test_a_report_does_nothing_else_with_the_folder_of_a_training(
    run: Callable[..., str], places: List[Path]
) -> None:
    training = hostile(places[2] / "x", HOSTILE[0]).with_name("model")
    shutil.copy(GOLDEN / "stopped" / "words" / "metrics_epoch_0.json", training)
    words = [training, "-o", "report.html"]
    assert not run("elmo-report", words)
    with audited(*places) as heard:
        assert not run("elmo-report", words)
    assert heard == []


def test_the_hook_hears_what_it_listens_for(places: List[Path], tmp_path: Path) -> None:
    with audited(*places) as heard:
        sys.modules.pop("this", None)
        __import__("this")
        (tmp_path / "elsewhere").write_text("x")
        (places[0] / "target").write_text("x")
        __import__("socket").socket().close()
    assert [line.split()[0] for line in heard] == ["import", "written", "socket.__new__"]
