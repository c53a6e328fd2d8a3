"""The place of a file that is named by a path or an address."""

import os
from os import PathLike
from pathlib import Path
from typing import Union

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path


def resolve_path(source: Union[str, PathLike]) -> Path:
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
        If there is none of this name.
    ConfigurationError
        If an address can't be fetched, or the system refuses a path.
    """
    if "://" in str(source):
        try:
            return Path(cached_path(source))
        except FileNotFoundError:
            raise
        # Each kind of address has errors of its own, from libraries that may be missing.
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ConfigurationError(f"{source}: it can't be fetched: {reason}") from None
    path = Path(os.path.expanduser(source))
    try:
        is_there = path.exists()
    except OSError as error:
        raise ConfigurationError(f"{source}: cannot be read ({error.strerror})") from None
    if not is_there:
        raise FileNotFoundError(f"{source}: there is no such file")
    return path
