"""Archives, folders and files that somebody has changed to do harm, made of the golden ones."""

import json
import tarfile
from pathlib import Path
from typing import Any, Callable, Dict

import torch

from tests import PROJECT_ROOT
from tests.tiny_archives import unpack

GOLDEN = PROJECT_ROOT / "tests" / "golden"
CHARACTERS, WORDS = (GOLDEN / name / "model.tar.gz" for name in ("characters", "words"))

Change = Callable[[Path], Any]
"""Changes the files of an unpacked archive."""


def packed(folder: Path) -> Path:
    """An archive of the files in a folder, beside it."""
    path = folder.with_suffix(".tar.gz")
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for file in sorted(folder.iterdir()):
            archive.add(file, arcname=file.name)
    return path


def hostile(folder: Path, change: Change, archive: Path = WORDS) -> Path:
    """An archive in a folder that is made for it, with changed files."""
    folder.mkdir()
    unpacked = unpack(archive, folder / "model")
    change(unpacked)
    return packed(unpacked)


def with_config(**changes: Any) -> Change:
    """Sets values of the config, by their places with a double underscore for each dot."""

    def change(folder: Path) -> None:
        path = folder / "config.json"
        config: Dict[str, Any] = json.loads(path.read_text("utf-8"))
        for place, value in changes.items():
            *parents, last = place.split("__")
            block = config
            for parent in parents:
                block = block[parent]
            block[last] = value
        path.write_text(json.dumps(config), "utf-8")

    return change


def with_text(name: str, content: bytes) -> Change:
    """Replaces the content of a file."""
    return lambda folder: (folder / name).write_bytes(content)


def with_weights(change: Callable[[Dict[Any, Any]], Any]) -> Change:
    """Changes the tensors, or replaces them by what `change` returns."""

    def change_file(folder: Path) -> None:
        tensors = torch.load(folder / "weights.th", weights_only=True)
        changed = change(tensors)
        torch.save(tensors if changed is None else changed, folder / "weights.th")

    return change_file
