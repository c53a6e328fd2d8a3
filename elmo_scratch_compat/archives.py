"""Archives of trained models, unpacked with care."""

import functools
import os
import shutil
import tarfile
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Dict, Iterator, Union

from elmo_scratch_compat.bounds import (
    ARCHIVE_ALWAYS,
    ARCHIVE_COMPRESSIBLE,
    ARCHIVE_END,
    ARCHIVE_MEMBERS,
)
from elmo_scratch_compat.parents import followed, pack_followed
from elmo_scratch_compat.plain_json import read_plain_json
from elmo_scratch_compat.plain_members import PlainMember
from elmo_scratch_compat.strangers import config_as_data, names_of, told_of
from elmo_scratch_compat.whole_files import written_beside

UNPACKABLE = (
    *(tarfile.TarError, zlib.error, EOFError, OSError),
    *(ValueError, OverflowError, RecursionError),  # of names, times and headers that make no sense
)
"""Errors that unpacking a damaged or malicious archive may raise."""


def pack_whole_and_unpack_safely(archival: Any) -> None:
    """Helps AllenNLP to write archives, and to read them."""
    pack_whole(archival)
    unpack_safely(archival)
    name_archives(archival)
    load_as_data(archival)


def pack_whole(archival: Any) -> None:
    """
    AllenNLP packs a model into the file that others wait for: one that is killed meanwhile leaves a
    part of an archive.
    """
    original = archival.archive_model

    @functools.wraps(original)
    def archive_model(
        serialization_dir: Any,
        weights: str = archival._DEFAULT_WEIGHTS,
        archive_path: Any = None,
        include_in_archive: Any = None,
    ) -> str:
        path = os.fspath(serialization_dir if archive_path is None else archive_path)
        if os.path.isdir(path):
            path = os.path.join(path, "model.tar.gz")
        with written_beside(path) as part:
            pack_followed(original, serialization_dir, weights, part, include_in_archive)
        return path

    archival.archive_model = archive_model


def unpack_safely(archival: Any) -> None:
    """
    AllenNLP unpacks archives without a look at where their members go, and shows a traceback from
    the depths of `tarfile` for a file that is no archive, or of its search for config.json. It
    runs the config as a Jsonnet program, which can read files and the environment; a training
    writes plain JSON. And a config can ask transformers to run what a repository holds.
    """

    @contextmanager
    def extracted_archive(resolved_archive_file: str, cleanup: bool = True) -> Iterator[str]:
        from allennlp.common.checks import ConfigurationError

        folder = tempfile.mkdtemp()
        try:
            try:
                with tarfile.open(resolved_archive_file, "r:gz", tarinfo=PlainMember) as archive:
                    _extract_all(archive, folder)
                    _read_to_the_end(archive)
            except UNPACKABLE as error:
                cleanup = True
                raise ConfigurationError(
                    f"{resolved_archive_file}: expected an archive made by `allennlp train` "
                    f"(model.tar.gz), but it can't be unpacked: {error}"
                ) from None
            if not (Path(folder) / archival.CONFIG_NAME).is_file():
                cleanup = True
                raise ConfigurationError(
                    f"{resolved_archive_file}: it holds no {archival.CONFIG_NAME}, so it is not "
                    "the output of a training"
                )
            try:
                config_in(Path(folder), resolved_archive_file)
            except ConfigurationError:
                cleanup = True
                raise
            yield folder
        finally:
            if cleanup:
                shutil.rmtree(folder, ignore_errors=True)

    archival.extracted_archive = extracted_archive


def name_archives(archival: Any) -> None:
    """
    Errors in what an archive holds name a temporary folder, which is gone. Here they name the
    archive and the member in it.
    """
    original, extracted_archive = archival.load_archive, archival.extracted_archive
    archives: Dict[str, str] = {}

    @contextmanager
    def remembered(resolved_archive_file: str, cleanup: bool = True) -> Iterator[str]:
        with extracted_archive(resolved_archive_file, cleanup) as folder:
            archives[folder] = str(resolved_archive_file)
            try:
                yield folder
            finally:
                if cleanup:
                    archives.pop(folder, None)

    @functools.wraps(original)
    def load_archive(*args: Any, **kwargs: Any) -> Any:
        from allennlp.common.checks import ConfigurationError

        try:
            return original(*args, **kwargs)
        except ConfigurationError as error:
            for folder, archive in archives.items():
                error.message = error.message.replace(f"{folder}{os.sep}", f"{archive}: ")
            raise
        finally:
            for folder in [folder for folder in archives if not os.path.exists(folder)]:
                archives.pop(folder, None)

    archival.extracted_archive, archival.load_archive = remembered, load_archive


def load_as_data(archival: Any) -> None:
    """
    A config in an archive can have any installed module imported, which runs it, and names that
    make no sense end in tracebacks that don't say which archive it was. A model of the Hugging Face
    Hub is a folder with a config, which AllenNLP runs as a Jsonnet program.
    """
    load, fetch = archival.load_archive, archival.cached_path

    @functools.wraps(load)
    def load_archive(
        archive_file: Any, cuda_device: int = -1, overrides: Any = "", weights_file: Any = None
    ) -> Any:
        with told_of(archive_file, OF_A_TRAINING), config_as_data(names_of(overrides)):
            archive = load(archive_file, cuda_device, overrides, weights_file)
            if os.path.isdir(archive_file):
                # The config tells which predictor suits the model.
                archive.config.params = followed(archive.config.params, archive_file)
            return archive

    @functools.wraps(fetch)
    def cached_path(source: Any, *args: Any, **kwargs: Any) -> Any:
        path = fetch(source, *args, **kwargs)
        if os.path.isdir(path) and not os.path.exists(source):
            config_in(Path(path), source)
        return path

    archival.load_archive, archival.cached_path = load_archive, cached_path


OF_A_TRAINING = "an archive made by `allennlp train` (model.tar.gz), or the folder of a training"


def config_in(folder: Path, source: Union[str, os.PathLike]) -> Any:
    """
    Reads the config of an unpacked archive or of a training's output folder, which messages call
    `source`. Raises `ConfigurationError` if it is larger or deeper than a training's, or no plain
    JSON that every parser understands, or asks for programs to be fetched.
    """
    return read_plain_json(folder / "config.json", source)


def _extract_all(archive: tarfile.TarFile, folder: str) -> None:
    """
    Refuses members that lead out of the folder, links, and contents that would fill the disk.
    """
    # Python's filter checks links too, but chains of links have got past it. No training packs any.
    how: Dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    allowed = ARCHIVE_ALWAYS + ARCHIVE_COMPRESSIBLE * os.path.getsize(str(archive.name))
    size = 0
    for number, member in enumerate(archive):
        if number == ARCHIVE_MEMBERS:
            raise tarfile.TarError(f"it holds more than {ARCHIVE_MEMBERS} files and folders")
        # An extended header may have replaced the size after `PlainMember` checked it.
        if member.size < 0:
            raise tarfile.TarError(f"{member.name!r} has a size below 0")
        size += tarfile.BLOCKSIZE + member.size
        if size > allowed:
            raise tarfile.TarError(
                f"it holds more than {allowed} bytes, far more than a model that takes so few"
            )
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
            raise tarfile.TarError(f"{member.name!r} would be outside the folder, or is a link")
        archive.extract(member, folder, **how)


def _read_to_the_end(archive: tarfile.TarFile) -> None:
    """
    Reads what follows the last member. Changed bytes may unpack all the same; the checksum at the
    very end of the file tells.
    """
    left = ARCHIVE_END
    while left >= 0 and archive.fileobj and (block := archive.fileobj.read(2**16)):
        left -= len(block)
    if left < 0:
        raise tarfile.TarError(f"more than {ARCHIVE_END} bytes follow its last file")
