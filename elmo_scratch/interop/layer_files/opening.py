"""Opening files of layers, from whomever they come."""

from pathlib import Path

import h5py
from allennlp.common.checks import ConfigurationError

SENTENCE_INDEX = "sentence_to_index"
"""The data set that maps sentences to the keys of their vectors."""


def opened(path: Path) -> h5py.File:
    """The file, if it is there and can be read."""
    if not path.is_file():
        reason = "expected a file, but it is a folder" if path.is_dir() else "there is no such file"
        raise ConfigurationError(f"{path}: {reason}")
    try:
        return h5py.File(path, "r")
    except Exception as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> ConfigurationError:
    """
    # Returns

    `ConfigurationError`
        That a file is damaged, or is another one: h5py raises nearly every kind of error there is.
    """
    return ConfigurationError(
        f"{path}: expected an HDF5 file of layers, as `allennlp elmo` writes it, but it can't be "
        f"read; it may not have been copied to its end. {error}"
    )


def has_sentence_index(file: h5py.File) -> bool:
    """Whether a file has a map from sentences to keys, and no sentence of that name."""
    if not isinstance(file.get(SENTENCE_INDEX, getlink=True), h5py.HardLink):
        return False
    index = file[SENTENCE_INDEX]
    if not isinstance(index, h5py.Dataset) or index.shape != (1,):
        return False
    string = h5py.check_string_dtype(index.dtype)
    return string is not None and string.length is None


def has_numbers_for_keys(file: h5py.File) -> bool:
    """Whether keys look like line numbers, where the file doesn't say it; in doubt they do."""
    count = len(file)
    ends = {file.id.get_objname_by_idx(place) for place in (0, count - 1)} if count else set()
    return all(name.isdigit() for name in ends)
