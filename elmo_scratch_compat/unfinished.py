"""Folders for what isn't whole yet, which the next writer removes where theirs was killed."""

import fcntl
import os
import re
import secrets
import shutil
from contextlib import contextmanager, suppress
from typing import Iterator, Optional, Tuple

LONGEST_NAME = 255
"""Bytes that a file system allows for a name."""

LOCK = "lock"
"""The file in such a folder that its writer keeps locked."""

ENDING = r"\.[0-9a-f]{12}\.\d{1,10}\.part"
"""
The end of the name of such a folder, after a full stop and the name of what is written: random
digits, and the number of the process, which people may want to know.
"""


@contextmanager
def unfinished(target: str, *, folder: Optional[str] = None, told: str = "") -> Iterator[str]:
    """
    Gives the block a path to write to, with the name of `target`, in a folder of its own that goes
    when the block ends. The block moves what it wrote to `target`. Errors in the block name `told`
    where they would name the temporary path.

    Folders that killed writers of the same `target` have left are removed first. A writer keeps a
    file in its folder locked (flock), which ends with its process, in whatever container or, on a
    network file system, on whatever machine it runs. Where files can't be locked, nothing is
    removed.

    # Parameters

    target : `str`
        What shall be written.
    folder : `str`, optional (default = that of `target`)
        Where the temporary folder is made: on the disk of `target`.
    told : `str`, optional (default = `target`)
        The name of `target` in errors.

    # Raises

    OSError
        If the folder can't be made.
    """
    beside, name = os.path.split(target)
    beside = folder or beside or os.curdir
    try:
        remove_leftovers(beside, name)
        own, lock = _locked_folder(beside, name)
    except OSError as error:
        # It names a folder that nobody has heard of.
        raise OSError(error.errno, error.strerror, told or target) from None
    part = os.path.join(own, name)
    try:
        yield part
    except Exception as error:
        _tell(error, part, told or target)
        raise
    finally:
        _remove(own)
        os.close(lock)


def remove_leftovers(folder: str, name: Optional[str] = None) -> None:
    """Removes what writers of `name`, or of any name, have left in a folder if they are no more."""
    beginning = re.escape(_beginning(name)) if name is not None else r"\.[\s\S]+"
    with suppress(OSError), os.scandir(folder) as entries:
        found = [
            entry.path
            for entry in entries
            if re.fullmatch(beginning + ENDING, entry.name) and entry.is_dir(follow_symlinks=False)
        ]
        for path in found:
            _remove_if_dead(path)


def _beginning(name: str) -> str:
    """The beginning of the names of folders for a file or folder `name`, cut where it is long."""
    room = LONGEST_NAME - len(".") - len(".0123456789ab.0123456789.part")
    return "." + os.fsdecode(os.fsencode(name)[:room])


def _locked_folder(beside: str, name: str) -> Tuple[str, int]:
    """Makes a folder, and returns it with the descriptor that keeps its lock."""
    while True:
        own = os.path.join(beside, f"{_beginning(name)}.{secrets.token_hex(6)}.{os.getpid()}.part")
        os.mkdir(own)
        path = os.path.join(own, LOCK)
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:  # Another writer took the empty folder for a leftover.
            continue
        except OSError:
            with suppress(OSError):
                os.rmdir(own)
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_own = os.path.samestat(os.fstat(lock), os.stat(path))
        except (BlockingIOError, FileNotFoundError):
            is_own = False
        except OSError:
            # Files can't be locked here. Without the file nobody takes the folder for a leftover.
            os.remove(path)
            return own, lock
        if is_own:
            return own, lock
        # Another writer took the folder for a leftover, before it was locked.
        os.close(lock)


def _remove_if_dead(own: str) -> None:
    """Removes a folder if nobody holds its lock, or if it is empty and so has no lock yet."""
    try:
        lock = os.open(os.path.join(own, LOCK), os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        with suppress(OSError):
            os.rmdir(own)
        return
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(own)
    except OSError:
        pass
    finally:
        os.close(lock)


def _remove(own: str) -> None:
    """Removes a folder, its lock last: one without a lock, but not empty, would stay for ever."""
    with suppress(OSError):
        for entry in list(os.scandir(own)):
            if entry.name == LOCK:
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.remove(entry.path)
        with suppress(FileNotFoundError):
            os.remove(os.path.join(own, LOCK))
        os.rmdir(own)


def _tell(error: Exception, part: str, told: str) -> None:
    """Lets an error name what is written, where it names its temporary path."""
    for attribute in ("filename", "filename2", "message"):
        value = getattr(error, attribute, None)
        if isinstance(value, (str, os.PathLike)) and part in str(value):
            setattr(error, attribute, str(value).replace(part, told))
    error.args = tuple(
        value.replace(part, told) if isinstance(value, str) else value for value in error.args
    )
