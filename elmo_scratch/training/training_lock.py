"""One training at a time in a folder."""

import errno
import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import MutableMapping, Optional, TextIO, Tuple
from weakref import WeakValueDictionary

from allennlp.common.checks import ConfigurationError

LOCK = "training.lock"
"""The file in a training's folder that is locked. It names the process that trains, or trained
last."""

HELD = (errno.EACCES, errno.EAGAIN)
"""What a system says where another process has the lock."""


_OPEN: MutableMapping[Tuple[int, int], TextIO] = WeakValueDictionary()
"""Files of this process's locks, by device and number. Whoever closes one of two that are the same
ends the lock of both, so there is never a second one."""


class TrainingLock:
    """
    Keeps other processes from training in a folder, for as long as the instance or its process
    lives: a second one would remove what the first one is writing.

    Unlike a lock of `filelock` it isn't handed on to children, which may outlive a training that
    was killed, such as the workers of a data loader. Within a process it keeps nobody out. Where
    files can't be locked, or the folder can't be written to, there is none.

    # Parameters

    folder : `Path`
        The folder of the training.

    # Raises

    ConfigurationError
        If another process trains there.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._locked: Optional[os.stat_result] = None
        try:
            self._file = _opened(self._path)
        except OSError:
            return
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in HELD:
                return
            self._file.seek(0)
            raise ConfigurationError(
                f"{folder}: {self._file.read().strip() or 'another process'} trains there. Wait "
                "until it has ended, or stop it, and start again; or give this training another "
                "folder by -s."
            ) from error
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        self._file.flush()
        self._locked = os.fstat(self._file.fileno())

    def check(self) -> None:
        """
        # Raises

        ConfigurationError
            If another training has begun in the folder, after it was removed with the lock in it.
        """
        with suppress(FileNotFoundError):
            if self._locked and not os.path.samestat(self._locked, os.stat(self._path)):
                raise ConfigurationError(
                    f"{self._path.parent}: another training has begun here since this one did, in "
                    "a new folder of the name. Nothing more is written to it."
                )


def _opened(path: Path) -> TextIO:
    """The file of a lock, which need not be there yet."""
    with suppress(FileNotFoundError):
        there = os.stat(path)
        file = _OPEN.get((there.st_dev, there.st_ino))
        if file is not None:
            return file
    # Not cut off before it is locked: it says who has the lock.
    file = open(path, "a+", encoding="utf-8")
    there = os.fstat(file.fileno())
    _OPEN[there.st_dev, there.st_ino] = file
    return file
