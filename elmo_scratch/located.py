"""Where files lie that are named by a path or an address."""

import os
from os import PathLike
from pathlib import Path
from typing import Union

from allennlp.common.file_utils import cached_path


def located(source: Union[str, PathLike]) -> Path:
    """
    Files of this machine are read where they lie. AllenNLP's `cached_path` makes its cache for
    those too, which nobody can whose home folder is missing or not to be written to.

    # Parameters

    source : `Union[str, PathLike]`
        A path, or an address that `cached_path` can fetch.

    # Returns

    `Path`
        A file or folder that is there.

    # Raises

    FileNotFoundError
        If there is none of this path; for an address, whatever the library raises that fetches it.
    """
    if "://" in str(source):
        return Path(cached_path(source))
    path = Path(os.path.expanduser(source))
    if not path.exists():
        raise FileNotFoundError(f"{source}: there is no such file")
    return path
