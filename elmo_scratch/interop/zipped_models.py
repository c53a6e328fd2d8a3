"""
Models that lie in a folder or a zip file with their official files, under the names that other
programs give them: `bilm-tf`, simple_elmo, and the repository of the Nordic Language Processing
Laboratory (NLPL), whose zip files hold `options.json`, `model.hdf5` and a vocabulary. The
laboratory's models of ELMoForManyLangs have other files.
"""

import hashlib
import os
import shutil
import stat
from pathlib import Path, PurePosixPath
from typing import Dict, List, NamedTuple, Optional
from zipfile import ZipFile, ZipInfo

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.identity import stamp_of
from elmo_scratch_compat.bounds import HDF5_ALWAYS, HDF5_COMPRESSIBLE

OPTIONS_NAME, WEIGHTS_NAME = "options.json", "weights.hdf5"
"""The official files, as AllenNLP and this package name them."""

OTHER_WEIGHTS_NAME = "model.hdf5"
"""The name of the weights in NLPL's repository, and for simple_elmo."""

VOCABULARY_NAME = "vocab.txt"
"""The words of the model's training, one a line. A biLM of characters does without."""

SOFTMAX_NAME = "softmax_weights.hdf5"
"""The softmax of the model's training, whose rows are those words."""

MANY_LANGS_NAMES = ("char.dic", "word.dic", "encoder.pkl", "token_embedder.pkl")
"""The files of ELMoForManyLangs, besides `config.json` and another of JSON that it names."""

LONGEST_STEM = 200
"""Bytes of a zip file's name in that of its folder, which other names are made of."""

BY_SYSTEM = "__MACOSX"
"""The folder in a zip file where a Mac puts what only concerns itself."""


class ModelFiles(NamedTuple):
    """The two official files of a model."""

    options: Path
    weights: Path


class SoftmaxFiles(NamedTuple):
    """The two further files by which a model scores words: its softmax, and the words of that."""

    softmax: Path
    words: Path


def official_files(folder: Path) -> Optional[ModelFiles]:
    """
    The official files in a folder: `options.json`, and `weights.hdf5`, `model.hdf5` or the only
    file of HDF5. `None` if they are not there.
    """
    options = folder / OPTIONS_NAME
    if not options.is_file():
        return None
    names = [path.name for path in folder.glob("*.hdf5") if path.name != SOFTMAX_NAME]
    weights = _weights_among(names)
    return None if weights is None else ModelFiles(options, folder / weights)


def softmax_files(folder: Path) -> Optional[SoftmaxFiles]:
    """
    The files beside the official ones in a folder by which the model scores words:
    `softmax_weights.hdf5` and `vocab.txt`. `None` if they are not both there.
    """
    files = SoftmaxFiles(folder / SOFTMAX_NAME, folder / VOCABULARY_NAME)
    return files if all(file.is_file() for file in files) else None


def _weights_among(names: List[str]) -> Optional[str]:
    """The name of the file of weights, among those in the folder of `options.json`."""
    for name in (WEIGHTS_NAME, OTHER_WEIGHTS_NAME):
        if name in names:
            return name
    files = [name for name in names if name.endswith(".hdf5")]
    return files[0] if len(files) == 1 else None


def unpacked(zip_file: Path, folder: Path) -> Path:
    """
    Unpacks the model in a zip file, unless it has been before and the file is the same.

    # Parameters

    zip_file : `Path`
        The zip file of a model; what else it holds stays in it.
    folder : `Path`
        The model gets a folder in this one.

    # Returns

    `Path`
        A folder with `options.json`, `weights.hdf5` and, if the zip file has them, `vocab.txt` and
        `softmax_weights.hdf5`; or with the files of ELMoForManyLangs.

    # Raises

    ConfigurationError
        If the zip file is damaged, holds no model or several, or its files are encrypted, are
        links, or would be far larger than the zip file; or if there is no room.
    """
    # Preparing a corpus needs `allennlp.data`, which takes seconds to import.
    from elmo_scratch.data.corpus.prepared_corpus import make_once

    try:
        stamp = f"{zip_file.resolve()} {stamp_of(zip_file)}"
        digest = hashlib.sha256(os.fsencode(stamp)).hexdigest()
        stem = os.fsdecode(os.fsencode(zip_file.stem)[:LONGEST_STEM])
        place = folder / f"{stem}-{digest[:16]}"
        with ZipFile(zip_file) as opened:
            members = _members(opened, zip_file)

            def unpack(part: Path) -> None:
                for name, member in members.items():
                    with opened.open(member) as source, (part / name).open("wb") as target:
                        shutil.copyfileobj(source, target)

            make_once(place, unpack)
        return place
    except ConfigurationError:
        raise
    # A damaged file raises nearly every kind of error: a number in it may ask for a place before it
    # begins, and a name may be too long for the disk.
    except Exception as error:
        if not zip_file.exists():
            raise
        raise ConfigurationError(
            f"{zip_file}: expected the zip file of a model, but it can't be unpacked; if it was "
            f"downloaded, the download may be incomplete. {error}"
        ) from None


def _members(opened: ZipFile, zip_file: Path) -> Dict[str, ZipInfo]:
    """
    The members that are the model, by the names that they get; all in one folder of the zip file.
    """
    found: Dict[PurePosixPath, Dict[str, ZipInfo]] = {}
    for member in opened.infolist():
        path = PurePosixPath(member.filename)
        if not member.is_dir() and BY_SYSTEM not in path.parts:
            found.setdefault(path.parent, {})[path.name] = member
    models = [model for model in map(_model_among, found.values()) if model]
    if len(models) != 1:
        raise ConfigurationError(
            f"{zip_file}: expected one model, {OPTIONS_NAME} and {OTHER_WEIGHTS_NAME} as NLPL's "
            f"repository has them, but it holds {len(models)}"
        )
    for member in models[0].values():
        if stat.S_ISLNK(member.external_attr >> 16):
            raise ConfigurationError(f"{zip_file}: {member.filename} is a link")
    # What the directory says of the bytes that are stored of a member may be wrong.
    size, stored = sum(member.file_size for member in models[0].values()), zip_file.stat().st_size
    if size > HDF5_ALWAYS + HDF5_COMPRESSIBLE * stored:
        raise ConfigurationError(
            f"{zip_file}: the model in it would take {size} bytes, but the file has only {stored}"
        )
    return models[0]


def _model_among(members: Dict[str, ZipInfo]) -> Dict[str, ZipInfo]:
    """The model's files among the members of one folder; empty if there is none."""
    weights = _weights_among([name for name in members if name != SOFTMAX_NAME])
    if OPTIONS_NAME in members and weights is not None:
        files = {OPTIONS_NAME: members[OPTIONS_NAME], WEIGHTS_NAME: members[weights]}
        others = (VOCABULARY_NAME, SOFTMAX_NAME)
        return {**files, **{name: members[name] for name in others if name in members}}
    if {"config.json", "encoder.pkl"} <= set(members):
        return {
            name: member
            for name, member in members.items()
            if name in MANY_LANGS_NAMES or name.endswith(".json")
        }
    return {}
