"""Files that take the place of older ones when they are whole."""

import os
from contextlib import contextmanager
from typing import Iterator

from elmo_scratch_compat.unfinished import unfinished


@contextmanager
def written_beside(path: str) -> Iterator[str]:
    """
    Gives the block another name to write to, and moves what it wrote there to `path` if it ends
    without an error. A link stays, and the file that it leads to is replaced. Devices and pipes are
    written to as they are, and so are files in a folder where none can be made.
    """
    if not _can_be_replaced(path):
        yield path
        return
    wanted = os.path.realpath(path)
    with unfinished(wanted, told=path) as part:
        yield part
        os.replace(part, wanted)


def _can_be_replaced(path: str) -> bool:
    """Whether a file can be made beside a path and moved there."""
    is_file = os.path.isfile(path) or not os.path.exists(path)
    return is_file and os.access(os.path.dirname(os.path.realpath(path)), os.W_OK | os.X_OK)
