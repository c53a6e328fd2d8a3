"""An archive, a folder or a file from a stranger is data, as Python's own audit events tell."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator, List

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import load_archive

from elmo_scratch import ElmoEmbedder, SentenceScorer
from elmo_scratch.interop import LayerFile, export_bilm, read_bilm
from elmo_scratch_compat.strangers import IMPORTABLE
from tests.strangers.hostile_archives import (
    CHARACTERS,
    GOLDEN,
    WORDS,
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
    _heard.clear()
    _places.extend(places)
    try:
        yield _heard
    finally:
        _places.clear()


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


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> List[Path]:
    """Folders for the output, for temporary files, and for the files of strangers."""
    found = [tmp_path / name for name in ("target", "temporary", "strangers")]
    for place in found:
        place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(found[1]))
    # What the package itself imports when it is first used.
    for archive in (CHARACTERS, WORDS):
        for read in READERS:
            read(archive, found[0])
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


def test_the_hook_hears_what_it_listens_for(places: List[Path], tmp_path: Path) -> None:
    with audited(*places) as heard:
        sys.modules.pop("this", None)
        __import__("this")
        (tmp_path / "elsewhere").write_text("x")
        (places[0] / "target").write_text("x")
        __import__("socket").socket().close()
    assert [line.split()[0] for line in heard] == ["import", "written", "socket.__new__"]
