"""Writes HDF5 files that hold the layers of sentences."""

from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Tuple, Union

import h5py
import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of
from h5py import h5d, h5p, h5s, h5t

from elmo_scratch.files.atomic import atomic_write, check_place
from elmo_scratch.interop.layer_files.facts import (
    CHECKSUM,
    MODULUS,
    LayerFileFacts,
    facts_checksum,
    numbers_checksum,
    text_checksum,
)
from elmo_scratch.interop.layer_files.hdf5 import OutputStream
from elmo_scratch.interop.layer_files.reader import (
    SENTENCE_INDEX,
    LayerFile,
    is_key,
)
from elmo_scratch.interop.layer_files.sentence_map import (
    LONGEST_STRING,
    IndexText,
    write_long_string,
)

COMPRESSIONS = ("gzip", "lzf")
COPIED_AT_ONCE = 128
"""
Data sets copied at once. HDF5 keeps some kilobytes for each until their source file is closed.
"""

SPACES_KEPT = 1024
"""How many shapes of data sets are kept for reuse."""

FILE_TYPES = {"float32": h5t.IEEE_F32LE, "float16": h5t.IEEE_F16LE}
NUMPY_TYPES = {"float32": "<f4", "float16": "<f2"}


class LayerFileWriter:
    """
    Writes one data set a sentence, and at the end `sentence_to_index`, a JSON map from a sentence
    to its key.

    The attribute `checksum` sums up all of it, for `LayerFile.check`.

    Made by `LayerFileWriter.open`.

    # Source

    The output of `allennlp elmo` in AllenNLP 0.9. The attributes, `facts.pool`, `facts.dtype` and
    `compression` go beyond it.
    """

    def __init__(
        self,
        path: Path,
        name: Path,
        stream: OutputStream,
        file: h5py.File,
        facts: LayerFileFacts,
        compression: Optional[str],
    ) -> None:
        self._path, self._name = path, name
        self._checksum = facts_checksum(facts)
        self._stream = stream
        self._file, self._root = file, file.id
        self._facts = facts
        self._compression = compression
        self._type = FILE_TYPES[facts.dtype]
        self._properties = h5p.create(h5p.DATASET_CREATE)
        self._properties.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        self._properties.set_fill_time(h5d.FILL_TIME_NEVER)
        self._properties.set_obj_track_times(False)
        self._spaces: Dict[Tuple[int, ...], h5s.SpaceID] = {}

    @classmethod
    @contextmanager
    def open(
        cls,
        path: Union[str, PathLike],
        facts: LayerFileFacts,
        *,
        compression: Optional[str] = None,
        name: Optional[Path] = None,
    ) -> Iterator["LayerFileWriter"]:
        """
        Opens a writer for the block. The file appears under its name when the block ends without an
        error; otherwise an older file of that name stays as it was.

        # Parameters

        path : `Union[str, PathLike]`
            Where the file shall appear.
        facts : `LayerFileFacts`
            The facts that the file records about itself.
        compression : `str`, optional (default = `None`)
            `"gzip"` or `"lzf"`.
        name : `Path`, optional (default = `path`)
            The file in errors, if this one becomes a part of it.

        # Raises

        ConfigurationError
            If the folder of `path` does not exist or can't be written to, or `path` is a folder.
        OSError
            If the disk is full.
        ValueError
            If there is no such compression.
        """
        if compression not in (None, *COMPRESSIONS):
            raise ValueError(
                f"expected a `compression` among {', '.join(COMPRESSIONS)}, or none, but got "
                f"{compression!r}"
            )
        path = Path(path)
        name = path if name is None else name
        check_place(path, told=name)
        with (
            atomic_write(path, told=name) as temporary,
            OutputStream.open(temporary, name) as stream,
            stream.hdf5_file(has_many_names=True) as file,
        ):
            facts.write(file)
            writer = cls(path, name, stream, file, facts, compression)
            yield writer
            file.attrs[CHECKSUM] = numpy.uint64(writer._checksum % MODULUS)

    def write(self, key: str, vectors: numpy.ndarray) -> None:
        """
        Writes the vectors of one sentence.

        # Parameters

        key : `str`
            The number of the sentence, or the sentence itself.
        vectors : `numpy.ndarray`
            Shape `(layers, tokens, width)`; the file's facts may drop the axes `layers` and
            `tokens`.

        # Raises

        ConfigurationError
            If the file has the key already, HDF5 knows no such key, or a number is too large for
            the file's type.
        OSError
            If the disk is full.
        ValueError
            If the vectors have another shape.
        """
        space = self._spaces.get(vectors.shape)  # Many sentences have the same length.
        if space is None:
            if not self._facts.admits(vectors.shape):
                raise ValueError(f"{self._facts} admits no vectors of the shape {vectors.shape}")
            space = h5s.create_simple(vectors.shape)
            if len(self._spaces) < SPACES_KEPT:
                self._spaces[vectors.shape] = space
        if not is_key(key):
            raise ConfigurationError(
                f"{self._name}: HDF5 can't have {key!r} as a key: a key is not empty, not a full "
                "stop, and has no slash or NUL in it. Let the numbers of the lines be the keys."
            )
        name = key.encode("utf-8", "surrogateescape")
        with numpy.errstate(over="ignore"):
            narrowed = vectors.astype(NUMPY_TYPES[self._facts.dtype], copy=False)
        if self._facts.dtype == "float16" and not numpy.isfinite(narrowed).all():
            raise ConfigurationError(
                f"{self._name}: the vectors of {key!r} have numbers that float16 has no room for. "
                "Write float32."
            )
        pieces = _pieces(narrowed) if vectors.size else []
        try:
            if self._compression is not None and pieces:
                self._file.create_dataset(name, data=narrowed, compression=self._compression)
            else:
                # For a short sentence this takes half as long as `h5py.Group.create_dataset`.
                made = h5d.create(self._root, name, self._type, space, self._properties)
                if pieces:
                    # HDF5 would need the numbers in one piece, and block Python's other threads.
                    self._stream.write_at(made.get_offset(), pieces)
        except ValueError:
            # A check before each write would cost a tenth of the writing time.
            self._check_is_new(key)
            raise
        self._stream.check()
        self._checksum += numbers_checksum(name, pieces)

    def copy_from(self, path: Union[str, PathLike]) -> None:
        """
        Copies the vectors of another file of layers as they are stored there, compressed or not.

        # Raises

        ConfigurationError
            If it can't be read, has other facts than this file or a key that is there already, or
            its numbers or sentences are not those that its checksum was taken of.
        OSError
            If the disk is full.
        """
        with LayerFile(path) as part:
            for name, wanted in self._facts._asdict().items():
                if getattr(part.facts, name) != wanted:
                    raise ConfigurationError(
                        f"{path}: only parts of the same export can be joined, but `{name}` is "
                        f"{getattr(part.facts, name)!r} here and {wanted!r} for {self._name}"
                    )
            total = 0
            for keys in lazy_groups_of(list(part.keys()), COPIED_AT_ONCE):
                for key in keys:
                    self._check_is_new(key)
                    total += part.copy(key, self._file)
                    self._stream.check()
                # The next access opens the file again.
                part.close()
            part.check_total(total)
        self._checksum += total

    def write_index(self, sentences: Iterable[Tuple[str, str]]) -> None:
        """
        Writes `sentence_to_index` from sentences and their keys; if sentences are equal, the last
        one's key counts.

        # Raises

        ConfigurationError
            If the map has more bytes than HDF5 allows.
        OSError
            If the disk is full.
        """
        with IndexText.of(sentences, self._path.parent) as index:
            if index.size > LONGEST_STRING:
                raise ConfigurationError(
                    f"{self._name}: the map from sentences to keys has {index.size} bytes, but "
                    f"HDF5 allows no more than {LONGEST_STRING}. Leave it out, or divide the text."
                )
            write_long_string(self._file, SENTENCE_INDEX, index.size, index.pieces())
            self._stream.check()
            self._checksum += text_checksum(index.pieces())

    def _check_is_new(self, key: str) -> None:
        """Raises an error if the key is there already."""
        if self._root.links.exists(key.encode("utf-8", "surrogateescape")):
            raise ConfigurationError(
                f"{self._name}: the key {key!r} is there already. Let the numbers of the lines be "
                "the keys where sentences repeat."
            )


def _pieces(numbers: numpy.ndarray) -> List[numpy.ndarray]:
    """Splits an array into C-contiguous pieces that make the whole when put end to end."""
    if numbers.flags.c_contiguous:
        return [numbers]
    if numbers.ndim == 1:
        return [numpy.ascontiguousarray(numbers)]
    if numbers[0].flags.c_contiguous:
        return list(numbers)
    return [piece for part in numbers for piece in _pieces(part)]
