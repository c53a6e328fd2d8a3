"""Output files that appear whole or not at all."""

import os
import shutil
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Sequence

from allennlp.common.checks import ConfigurationError


def check_place(path: Path) -> None:
    """
    Complains before the work rather than after it.

    # Raises

    ConfigurationError
        If no file can be written at `path`, or where it leads if it is a link.
    """
    try:
        _check_place(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: can't be written to ({error.strerror})") from None


def _check_place(path: Path) -> None:
    """As `check_place`, but that the system has errors of its own for names it doesn't take."""
    if path.is_dir():
        raise ConfigurationError(f"{path}: expected a file to write to, but it is a folder")
    target = _target(path)
    # What is still a link is one of a circle.
    if (path.exists() or target.is_symlink()) and not path.is_file():
        raise ConfigurationError(f"{path}: expected a file to write to, but it is no regular file")
    folder = target.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        reason = "can't be written to" if folder.is_dir() else "doesn't exist"
        raise ConfigurationError(f"{path}: the folder {folder} {reason}")


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """
    Gives the block a temporary path beside `path`, and moves what the block wrote there to `path`
    when it ends without an error. Until then an older file at `path` stays as it is; after an
    error nothing is left of the new one. A link stays, and the file that it leads to is replaced.

    # Parameters

    path : `Path`
        Where the file shall appear. Its folder must exist.
    """
    target = _target(path)
    temporary = target.with_name(_temporary_name(target))
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary_name(path: Path) -> str:
    """One that no other process takes, even in a container of its own with the same numbers."""
    return f".{path.name}.{uuid.uuid4().hex[:8]}.{os.getpid()}.part"


def _target(path: Path) -> Path:
    """Where a path leads: itself, but for links."""
    return Path(os.path.realpath(path))


def sync(path: Path) -> None:
    """
    Waits until the content of a file, or which files a folder holds, is on the disk: what something
    else is removed for must outlast a machine that stops.

    # Raises

    OSError
        If it can't be written.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_writes(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """
    Gives the block an empty folder, and moves the files that the block wrote there to `folder` when
    it ends without an error. After an error in the block nothing has changed.

    A new folder appears with all its files at once. In a folder that is there already, the last of
    the files goes first and comes last: where it is, the others are those that belong to it.

    # Parameters

    folder : `Path`
        Where the files shall appear. The folder above it must exist.
    names : `Sequence[str]`
        The files that the block writes.
    """
    folder = Path(os.path.realpath(folder))
    name = _temporary_name(folder)
    # What is above a folder may be on another disk, or not to be written to.
    temporary = folder / name if folder.exists() else folder.with_name(name)
    try:
        temporary.mkdir()
        yield temporary
        if folder.exists():
            (folder / names[-1]).unlink(missing_ok=True)
            for name in names:
                os.replace(temporary / name, folder / name)
        else:
            os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
