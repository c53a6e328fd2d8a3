"""
Files that take the place of older ones when they are whole and on the disk.

A file's content is on the disk before the file gets its name, and the name is there before the
caller goes on. So a power cut leaves the old file or the new one, beside folders of the names
`.NAME.*.part`. It costs what was being written at that moment, and no file that is finished. A disk
that keeps its cache against the system's word, or a file system that can't sync folders, promises
less.
"""

import errno
import os
from contextlib import contextmanager
from typing import Iterator, Union

from elmo_scratch_compat.unfinished import unfinished

StrPath = Union[str, "os.PathLike[str]"]

CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""The error numbers of a file system that syncs no such file or folder."""


OPEN_FILES = ("/dev/", "/proc/")
"""
Where names stand for what is open already: `/dev/stdout` may be a regular file, which the shell and
other programs go on writing to.
"""

SHARED_MEMORY = "/dev/shm/"
"""A folder of ordinary files among the devices."""


@contextmanager
def written_beside(path: str) -> Iterator[str]:
    """
    Gives the block another name to write to, and moves what it wrote there to `path` if it ends
    without an error. A link stays, and the file that it leads to is replaced. Devices, pipes and
    what is open already, such as `/dev/stdout`, are written to as they are, and so are files in a
    folder where none can be made.
    """
    if not _can_be_replaced(path):
        yield path
        return
    wanted = os.path.realpath(path)
    with unfinished(wanted, told=path) as part:
        yield part
        move(part, wanted)


def move(source: StrPath, target: StrPath) -> None:
    """
    Moves a file, or a folder with all that is in it, to `target` on the same disk, in place of an
    older file. The content is on the disk before it has the new name, and the name is there when
    the function returns: a power cut leaves the old file or the new one. Raises `OSError` if a
    write fails.
    """
    if os.path.isdir(source):
        for folder, _, names in os.walk(source):
            for name in names:
                sync(os.path.join(folder, name))
            sync(folder)
    else:
        sync(source)
    os.replace(source, target)
    sync(os.path.dirname(target) or os.curdir)


def sync(path: StrPath) -> None:
    """
    Waits until the content of a file, or the list of files in a folder, is on the disk. Where the
    file system can't do that, or the path may be written but not read, nothing is waited for.
    Raises `OSError` if the write fails.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def _can_be_replaced(path: str) -> bool:
    """Whether a file can be made beside a path and moved there."""
    place = os.path.abspath(path)
    if place.startswith(OPEN_FILES) and not place.startswith(SHARED_MEMORY):
        return False
    is_file = os.path.isfile(path) or not os.path.exists(path)
    return is_file and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK | os.X_OK)
