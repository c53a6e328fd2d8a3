"""Finds a file that is named by a path or an address, and the folder of the cache."""

import os
from os import PathLike
from pathlib import Path
from typing import Union

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path

from elmo_scratch.files.download import fetched

CACHE_VARIABLE = "ELMO_SCRATCH_CACHE"
"""The environment variable that names the cache, `~/.cache/elmo_scratch` by default."""


def is_address(source: Union[str, PathLike]) -> bool:
    """Whether it is no path, but the address of a file somewhere else."""
    return "://" in str(source)


def resolve_path(source: Union[str, PathLike]) -> Path:
    """
    The local path of a path, of an address of HTTP, or of another that AllenNLP's `cached_path` can
    fetch. Local files are used where they lie: `cached_path` would make its cache for them too,
    which fails if the home folder is missing or can't be written to.

    Raises `FileNotFoundError` if there is no file or folder of this name, `ConfigurationError` if
    an address can't be fetched or the system refuses a path.
    """
    if is_address(source):
        fetch = fetched if str(source).startswith(("http://", "https://")) else cached_path
        try:
            return Path(fetch(str(source)))
        except (FileNotFoundError, ConfigurationError):
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


def local_file(source: Union[str, PathLike]) -> Path:
    """
    The local path of a file, fetched if it is an address. Raises `ConfigurationError` if it is
    missing, is a folder, may not be read or can't be fetched.
    """
    try:
        path = resolve_path(source)
    except FileNotFoundError:
        raise ConfigurationError(f"{source}: there is no such file") from None
    if path.is_dir():
        raise ConfigurationError(f"{source}: expected a file, but it is a folder")
    if not os.access(path, os.R_OK):
        raise ConfigurationError(f"{source}: cannot be read (permission denied)")
    return path


def default_cache_dir() -> Path:
    """The default folder of prepared corpora."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    return Path.home() / ".cache" / "elmo_scratch" / "corpora"
