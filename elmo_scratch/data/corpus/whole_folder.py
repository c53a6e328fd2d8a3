"""Folders of files that are made once, by one process, for all."""

import errno
import json
import logging
import os
import shutil
from pathlib import Path
from typing import Callable

from allennlp.common.checks import ConfigurationError
from filelock import FileLock, Timeout

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
"""Written last: the size of each file of the folder."""

PART = ".elmo_scratch_part"
"""Ends the name of a folder while it is filled; others of that name are leftovers, and removed."""

_FULL = (errno.ENOSPC, errno.EDQUOT)


def make_once(folder: Path, fill: Callable[[Path], None]) -> None:
    """
    Makes sure that a folder is there, whole. One process fills it, beside its place, and moves it
    there; others wait for that. What a killed process left half done is removed, here and of other
    folders beside, and a folder in which a file is missing or has another size is made anew.

    # Parameters

    folder : `Path`
        Where it shall be.
    fill : `Callable[[Path], None]`
        Writes the files into an empty folder. After an error nothing is left of them.

    # Raises

    ConfigurationError
        If the disk is full, or there is no place where one may write.
    """
    if is_whole(folder):
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(_lock_path(folder))
        try:
            lock.acquire(timeout=0)
        except Timeout:
            logger.info("Waiting for another process that prepares %s", folder)
            lock.acquire()
        try:
            if not is_whole(folder):
                _make(folder, fill)
        finally:
            lock.release()
    except OSError as error:
        if error.errno in _FULL:
            raise ConfigurationError(
                f"{folder.parent}: the disk is full, and what was written has been removed. Free "
                "some space, or choose another folder by `cache_dir` or by the environment "
                "variable ELMO_SCRATCH_CACHE."
            ) from None
        is_closed = isinstance(error, (PermissionError, FileExistsError, NotADirectoryError))
        if is_closed or error.errno == errno.EROFS:
            raise ConfigurationError(
                f"{error.filename or folder.parent}: cannot be written ({error.strerror}). Choose "
                "another folder by `cache_dir` or by the environment variable ELMO_SCRATCH_CACHE."
            ) from None
        raise


def is_whole(folder: Path) -> bool:
    """Whether a folder was made by `make_once` and its files still have their sizes."""
    try:
        sizes = json.loads((folder / MANIFEST).read_text("utf-8"))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _make(folder: Path, fill: Callable[[Path], None]) -> None:
    """Fills a folder. Its lock is held."""
    part = folder.with_name(folder.name + PART)
    _remove_leftovers(part)
    if folder.exists():
        logger.warning("%s is damaged and will be made anew", folder)
        shutil.rmtree(folder)
    try:
        part.mkdir()
        fill(part)
        sizes = {path.name: path.stat().st_size for path in part.iterdir()}
        (part / MANIFEST).write_text(json.dumps(sizes, indent=2) + "\n", "utf-8")
        for path in part.iterdir():
            _write_through(path)
        os.replace(part, folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _remove_leftovers(own: Path) -> None:
    """Removes half-made folders that nobody works on."""
    shutil.rmtree(own, ignore_errors=True)
    for part in own.parent.glob(f"*{PART}"):
        try:
            with FileLock(_lock_path(part.with_suffix("")), timeout=0):
                shutil.rmtree(part, ignore_errors=True)
        except (Timeout, OSError):
            # Somebody works on it, or it is another user's.
            pass


def _write_through(path: Path) -> None:
    """A machine that loses its power must not keep a manifest of files that never reached it."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _lock_path(folder: Path) -> str:
    return f"{folder}.lock"
