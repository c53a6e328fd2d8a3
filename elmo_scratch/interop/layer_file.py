"""HDF5 files of the layers of sentences."""

import json
import os
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Dict, Iterator, Union

import h5py
import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.whole_file import whole_file

SENTENCE_INDEX = "sentence_to_index"
"""The data set that maps sentences to the keys of their vectors."""


class LayerFileWriter:
    """
    Writes one float32 data set a sentence, its key the number of its line, from `"0"`; and at the
    end `sentence_to_index`, shape `(1,)`, a JSON map from a sentence to its key. The last of
    several equal sentences is the one that the map names.

    Made by `LayerFileWriter.open`.

    # Source

    The output of `allennlp elmo` in AllenNLP 0.9.
    """

    def __init__(self, file: h5py.File) -> None:
        self._file = file
        self._keys: Dict[str, str] = {}
        self._count = 0

    @classmethod
    @contextmanager
    def open(cls, path: Union[str, PathLike]) -> Iterator["LayerFileWriter"]:
        """
        A writer for the block. The file appears under its name when the block ends without an
        error; otherwise an older file of that name stays as it was.

        # Raises

        ConfigurationError
            If the folder of `path` does not exist or can't be written to, or `path` is a folder.
        """
        path = Path(path)
        if path.is_dir():
            raise ConfigurationError(f"{path}: expected a file to write to, but it is a folder")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            reason = "can't be written to" if path.parent.is_dir() else "doesn't exist"
            raise ConfigurationError(f"{path}: the folder {path.parent} {reason}")
        with whole_file(path) as temporary:
            with h5py.File(temporary, "w") as file:
                writer = cls(file)
                yield writer
                writer._write_index()

    def write(self, sentence: str, vectors: numpy.ndarray) -> None:
        """
        # Parameters

        sentence : `str`
            The line, stripped.
        vectors : `numpy.ndarray`
            Shape `(layers, tokens, width)`, or `(tokens, width)`.
        """
        key = str(self._count)
        self._file.create_dataset(key, data=vectors, dtype="float32")
        self._keys[sentence] = key
        self._count += 1

    def _write_index(self) -> None:
        """The map from sentences to keys."""
        index = self._file.create_dataset(
            SENTENCE_INDEX, (1,), dtype=h5py.string_dtype(encoding="utf-8")
        )
        index[0] = json.dumps(self._keys)
