"""Copies of a model's files, so that what is saved with them works where the model is gone."""

import json
import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict, Tuple

from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.files.atomic import atomic_write, atomic_writes
from elmo_scratch.integrations.vectors import Model
from elmo_scratch.interop.zipped_models import OPTIONS_NAME, WEIGHTS_NAME

POINTER = "model.json"
"""Says which folder beside it holds the copy; written last."""

FOLDER = "model"
"""The name that a model of several files has in its copy."""

_DIGEST = r"[0-9a-f]{16}"


def model_files(layers: SentenceLayers, model: Model) -> Dict[str, Path]:
    """
    Returns the files that `layers` was read from, each under its path within a copy. `model` is the
    name by which they were found.
    """
    paths = layers.files.paths
    if len(paths) == 1:
        return {paths[0].name: paths[0]}
    if isinstance(model, (list, tuple)):
        # They may lie in two folders, under any names.
        names = [OPTIONS_NAME, WEIGHTS_NAME]
    else:
        root = Path(os.path.commonpath(paths))
        names = [path.relative_to(root).as_posix() for path in paths]
    return {f"{FOLDER}/{name}": path for name, path in zip(names, paths)}


def write_copy(layers: SentenceLayers, model: Model, folder: Path) -> None:
    """
    Copies the files of a model into `folder`, which is made if it is missing. A copy that is there
    is replaced when the new one is whole. Raises `ConfigurationError` if the files have changed
    since they were read.
    """
    digest = layers.identity.removeprefix("sha256:")[:16]
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / digest).exists():
        files = model_files(layers, model)
        with atomic_writes(folder / digest, list(files)) as part:
            for name, path in files.items():
                (part / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, part / name)
    with atomic_write(folder / POINTER) as temporary:
        temporary.write_text(json.dumps({"copy": digest}), "utf-8")
    for older in folder.iterdir():
        if older.name != digest and re.fullmatch(_DIGEST, older.name):
            shutil.rmtree(older)


def find_copy(folder: Path) -> str:
    """
    Returns the name of the model whose copy `write_copy` put into `folder`. Raises
    `ConfigurationError` if there is none.
    """
    try:
        digest = json.loads((folder / POINTER).read_text("utf-8"))["copy"]
    except (OSError, ValueError, KeyError, TypeError):
        digest = ""
    if not (isinstance(digest, str) and re.fullmatch(_DIGEST, digest)):
        raise ConfigurationError(
            f"{folder}: expected the copy of a model, but there is no {POINTER} that names one. "
            "Save the pipeline again."
        )
    return _model_in(folder / digest)


def unpack_copy(files: Dict[str, bytes]) -> Tuple[str, TemporaryDirectory]:
    """
    Writes the files of a model, each under its path within a copy, into a temporary folder. Returns
    the model's name and the folder, which is removed when nothing refers to it. Raises
    `ConfigurationError` if they are not those of one model.
    """
    folder = TemporaryDirectory(prefix="elmo_scratch_")
    root = Path(folder.name).resolve()
    for name, content in files.items():
        path = (root / name).resolve()
        if root not in path.parents:
            raise ConfigurationError(f"expected the name of a file within a copy, but got {name!r}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return _model_in(root), folder


def _model_in(copy: Path) -> str:
    found = list(copy.iterdir()) if copy.is_dir() else []
    if len(found) != 1:
        raise ConfigurationError(
            f"{copy}: expected the copy of one model, but found {len(found)} files. Save the "
            "pipeline again."
        )
    return str(found[0])
