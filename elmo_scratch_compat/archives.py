"""Archives of trained models, unpacked with care."""

import functools
import json
import os
import shutil
import tarfile
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Dict, Iterator

from elmo_scratch_compat.plain_members import PlainMember
from elmo_scratch_compat.whole_files import written_beside

ALWAYS_ALLOWED = 2**28
"""Bytes that any archive may unpack to."""

COMPRESSIBLE = 200
"""How many times larger than its archive a model may be: weights hardly shrink."""

DEEPEST = 200
"""Levels of lists and maps that a config may have: Jsonnet's parser gives up at 500."""

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
            original(serialization_dir, weights, part, include_in_archive)
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
                    # Changed bytes may unpack all the same; the checksum at the very end tells.
                    while archive.fileobj and archive.fileobj.read(2**20):
                        pass
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
                settings = json.loads((Path(folder) / archival.CONFIG_NAME).read_bytes())
                runs_programs = _trusts_remote_code(settings)
            except (ValueError, RecursionError):
                cleanup = True
                raise ConfigurationError(
                    f"{resolved_archive_file}: expected its {archival.CONFIG_NAME} to be plain "
                    "JSON, as a training writes it. Anything else is a program, which could read "
                    "your files. If you trust it, unpack it and name its folder instead."
                ) from None
            if runs_programs:
                cleanup = True
                raise ConfigurationError(
                    f"{resolved_archive_file}: its config asks for `trust_remote_code`: "
                    "programs would be fetched and run. If you trust them, unpack it and name its "
                    "folder instead."
                )
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


def _trusts_remote_code(config: Any, depth: int = 0) -> bool:
    """
    Whether any part of a config asks for `trust_remote_code`. Raises `ValueError` if it is nested
    more than `DEEPEST` levels deep.
    """
    if depth > DEEPEST:
        raise ValueError(f"nested more than {DEEPEST} levels deep")
    if isinstance(config, dict):
        if config.get("trust_remote_code"):
            return True
        config = list(config.values())
    return isinstance(config, list) and any(_trusts_remote_code(part, depth + 1) for part in config)


def _extract_all(archive: tarfile.TarFile, folder: str) -> None:
    """
    Refuses members that lead out of the folder, links, and contents that would fill the disk.
    """
    # Python's filter checks links too, but chains of links have got past it. No training packs any.
    how: Dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    allowed = ALWAYS_ALLOWED + COMPRESSIBLE * os.path.getsize(str(archive.name))
    size = 0
    for member in archive:
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
