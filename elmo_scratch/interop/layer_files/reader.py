"""Reads HDF5 files that hold the layers of sentences."""

import math
import os
import re
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type, Union, overload

import h5py
import numpy
from allennlp.common.checks import ConfigurationError
from h5py import h5d, h5l, h5o, h5p, h5s, h5t, h5z

from elmo_scratch.files.identity import Stamp, stamp_of
from elmo_scratch.interop.layer_files.facts import (
    MODULUS,
    LayerFileFacts,
    check_attributes,
    facts_checksum,
    numbers_checksum,
    stored_checksum,
    text_checksum,
)
from elmo_scratch.interop.layer_files.hdf5 import open_hdf5
from elmo_scratch.interop.layer_files.sentence_map import (
    SentenceIndex,
    entries_of,
    read_long_string,
)
from elmo_scratch_compat.bounds import HDF5_ALWAYS, HDF5_COMPRESSIBLE

FORBIDDEN = {"/": "a slash", "\0": "a NUL"}
"""Characters that no HDF5 name may contain: a slash separates groups, a NUL ends a name."""

NO_NAMES = ("", ".")
"""Names by which HDF5 means the group itself."""


def is_key(key: str) -> bool:
    """Whether a data set can have this name."""
    return key not in NO_NAMES and not any(character in key for character in FORBIDDEN)


PLAIN_FILTERS = (h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32)
"""HDF5 filters that don't change how much room numbers take."""


def refused_size(file: h5py.File, found: h5d.DatasetID, properties: h5p.PropDCID) -> str:
    """
    The reason not to read a data set of these properties: it would take far more memory than the
    file can have numbers for. Empty if it may be read.

    A data set that was never written has any shape and takes no room in its file. A data set that
    is stored in chunks is unpacked a whole chunk at a time, however few numbers it has.
    """
    chunk: Tuple[int, ...] = ()
    if properties.get_layout() == h5d.CHUNKED:  # Nothing else can be packed.
        filters = [properties.get_filter(place)[0] for place in range(properties.get_nfilters())]
        if sum(code not in PLAIN_FILTERS for code in filters) > 1:
            return "is packed more than once, so that it can't be told what it would take in memory"
        chunk = properties.get_chunk()
    num_bytes = max(math.prod(found.shape), math.prod(chunk)) * found.get_type().get_size()
    if num_bytes <= HDF5_ALWAYS:
        return ""
    stored = min(found.get_storage_size(), os.path.getsize(file.filename))
    if num_bytes <= HDF5_COMPRESSIBLE * stored:
        return ""
    return f"would take {num_bytes} bytes of memory, but no more than {stored} bytes are stored"


KINDS = {2: "float16", 4: "float32", 8: "float64"}
"""The float types of vectors by their size in bytes."""


class DataSet:
    """
    One data set of vectors. Only numbers stored in the file itself are read, and never many more
    than the stored bytes account for.

    Raises `KeyError` if `file` has nothing of the name `key`, `ConfigurationError` if it holds no
    vectors. Error messages call the file `source`.
    """

    def __init__(self, file: h5py.File, key: str, source: str) -> None:
        self._place = f"{source}: {key!r}"
        self._file = file
        # HDF5 would resolve a path, and would cut the name at a NUL.
        if not is_key(key):
            raise KeyError(key)
        try:
            self._name = key.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise KeyError(key) from None
        try:
            found = self._open()
        except ConfigurationError:
            raise
        except Exception as error:
            # Damaged files make h5py raise nearly every kind of error there is.
            raise self._damage(error) from None
        if found is None:
            raise KeyError(key)
        self._found = found

    def read(self) -> numpy.ndarray:
        """Reads the vectors. Raises `ConfigurationError` if the file is damaged."""
        vectors = numpy.empty(self.shape, self.dtype)
        try:
            if vectors.size:
                self._found.read(h5s.ALL, h5s.ALL, vectors)
        except Exception as error:
            raise self._damage(error) from None
        return vectors

    def checksum(self) -> int:
        """The `numbers_checksum` of the vectors. Raises `ConfigurationError` on damage."""
        vectors = self.read()
        stored = vectors.astype(vectors.dtype.newbyteorder("<"), copy=False)
        return numbers_checksum(self._name, [stored])

    def copy(self, file: h5py.File) -> None:
        """Copies the data set as stored to another file. Raises `ConfigurationError` on damage."""
        try:
            h5o.copy(self._file.id, self._name, file.id, self._name)
        except Exception as error:
            raise self._damage(error) from None

    def _open(self) -> Optional[h5d.DatasetID]:
        """Opens the data set and checks it; `None` if it is missing."""
        links = self._file.id.links
        if not links.exists(self._name):
            return None
        if links.get_info(self._name).type != h5l.TYPE_HARD:
            raise self._refusal("a link")
        found = h5o.open(self._file.id, self._name)
        if not isinstance(found, h5d.DatasetID):
            raise self._refusal("no data set")
        space, kind = found.get_space(), found.get_type()
        if space.get_simple_extent_type() != h5s.SIMPLE:
            raise self._refusal("of no shape")
        if not isinstance(kind, h5t.TypeFloatID) or kind.get_size() not in KINDS:
            raise self._refusal(f"of the type {found.dtype}")
        self.shape: Tuple[int, ...] = space.get_simple_extent_dims()
        self.dtype = KINDS[kind.get_size()]
        properties = found.get_create_plist()
        self._check_place(properties)
        self._check_size(found, properties)
        return found

    def _check_place(self, properties: h5p.PropDCID) -> None:
        """Refuses numbers that are stored outside the file."""
        layout = properties.get_layout()
        if layout not in (h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED):
            raise self._refusal("stored in other files")
        if layout == h5d.CONTIGUOUS and properties.get_external_count():
            raise self._refusal("stored in another file")

    def _check_size(self, found: h5d.DatasetID, properties: h5p.PropDCID) -> None:
        """Refuses a shape that would take far more memory than the stored bytes account for."""
        reason = refused_size(self._file, found, properties)
        if reason:
            raise ConfigurationError(f"{self._place} has the shape {self.shape} and {reason}")

    def _refusal(self, what: str) -> ConfigurationError:
        """The error for a thing that is not vectors."""
        return ConfigurationError(
            f"{self._place}: expected vectors, a data set of numbers with a fraction, but it is "
            f"{what}"
        )

    def _damage(self, error: Exception) -> ConfigurationError:
        """The error for bytes that HDF5 can't read."""
        return ConfigurationError(
            f"{self._place} can't be read; the file is damaged or was not copied to its end. "
            f"{error}"
        )


LINE_NUMBER = re.compile("[0-9]{1,18}")
"""A key that counts lines. Other characters are digits too, and Python reads 4300 of them."""

SENTENCE_INDEX = "sentence_to_index"
"""The data set that maps sentences to the keys of their vectors."""


def opened(path: Path) -> h5py.File:
    """Opens the file. Raises `ConfigurationError` if it is missing or can't be read."""
    if not path.is_file():
        reason = "expected a file, but it is a folder" if path.is_dir() else "there is no such file"
        raise ConfigurationError(f"{path}: {reason}")
    try:
        return open_hdf5(path)
    except Exception as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> ConfigurationError:
    """The error for a file that is damaged or is no HDF5 file of layers."""
    return ConfigurationError(
        f"{path}: expected an HDF5 file of layers, as `allennlp elmo` writes it, but it can't be "
        f"read; it may not have been copied to its end. {error}"
    )


def has_sentence_index(file: h5py.File) -> bool:
    """Whether `sentence_to_index` in the file is the map, not the vectors of such a sentence."""
    if not isinstance(file.get(SENTENCE_INDEX, getlink=True), h5py.HardLink):
        return False
    index = file[SENTENCE_INDEX]
    if not isinstance(index, h5py.Dataset) or index.shape != (1,):
        return False
    string = h5py.check_string_dtype(index.dtype)
    return string is not None and string.length is None


def has_numbers_for_keys(file: h5py.File) -> bool:
    """
    Guesses whether keys are line numbers, for files that don't say; an empty file counts as such.
    """
    count = len(file)
    ends = {file.id.get_objname_by_idx(place) for place in (0, count - 1)} if count else set()
    return all(name.isdigit() for name in ends)


class LayerFile:
    """
    Reads the layers of sentences that `allennlp elmo` wrote, as arrays: `layer_file[3]` gives the
    line number 3, counted from 0; `layer_file["The river"]` gives a sentence, its last occurrence
    if it repeats; `layer_file[2:5]` is a list. Files of AllenNLP 0.9 are read as well.

    If the sentences themselves are the keys, lines have no numbers. The file of a shard numbers its
    lines as in the whole text, and a slice gives the lines that are there.

    The file stays open until `close` or the end of a `with` block. A process that receives the
    object opens the file anew; an error is raised if it is then another file.

    # Parameters

    path : `Union[str, PathLike]`
        The file.

    # Raises

    ConfigurationError
        If it is missing, or is no file of layers.
    """

    def __init__(self, path: Union[str, PathLike]) -> None:
        self.path = Path(path)
        # An absolute path stays right when the process changes its folder.
        self._place = Path(os.path.expanduser(path)).absolute()
        self._file: Optional[h5py.File] = None
        self._process = 0
        self._stamp: Optional[Stamp] = None
        self._index: Optional[SentenceIndex] = None
        self._first: Optional[int] = None
        file = self._open()
        try:
            self.has_index = has_sentence_index(file)
            with open_hdf5(self._place, check_attributes) as again:
                facts = LayerFileFacts.read(again, str(path))
                self._checksum = stored_checksum(again)
            self.facts = facts or self._derived_facts()
            # Files of AllenNLP 0.9 don't say whether keys are numbers.
            self._is_numbered = self.facts.keys is None and (
                self.has_index or has_numbers_for_keys(file)
            )
        except ConfigurationError:
            raise
        except Exception as error:
            raise unreadable(self.path, error) from None

    def __enter__(self) -> "LayerFile":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_file": None, "_index": None}

    def close(self) -> None:
        """Closes the file; the next access opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __len__(self) -> int:
        """How many sentences the file holds, repeated ones counted each time."""
        return len(self._open()) - self.has_index

    def __contains__(self, sentence: str) -> bool:
        """Whether the file is known to hold a sentence."""
        return self._key_of(sentence) is not None

    @overload
    def __getitem__(self, place: Union[int, str]) -> numpy.ndarray: ...

    @overload
    def __getitem__(self, place: slice) -> List[numpy.ndarray]: ...

    def __getitem__(
        self, place: Union[int, str, slice]
    ) -> Union[numpy.ndarray, List[numpy.ndarray]]:
        """
        Reads vectors by line number, sentence or slice.

        # Parameters

        place : `Union[int, str, slice]`
            The number of a line from 0, a sentence, or a slice of numbers.

        # Returns

        `Union[numpy.ndarray, List[numpy.ndarray]]`
            Shape `(layers, tokens, width)`; without the axis `layers` if one layer was kept,
            without `tokens` if these were pooled. A slice gives a list of such arrays.

        # Raises

        ConfigurationError
            If the file is damaged.
        IndexError
            If there is no line of that number.
        KeyError
            If there is no such sentence.
        """
        if isinstance(place, slice):
            first = self._first_number()
            numbers = range(*place.indices(first + len(self)))
            return [self[number] for number in numbers if number >= first]
        key = self._key_of(place) if isinstance(place, str) else self._key_at(place)
        if key is None:
            raise KeyError(f"{self.path} is not known to hold the sentence {place!r}")
        return self.read(key)

    def sentences(self) -> Iterator[Tuple[str, str]]:
        """
        Yields each sentence that the file is known to hold, once, with the name of its data set.
        Yields nothing if the file was written without its sentences.

        # Raises

        ConfigurationError
            If the map from sentences to keys makes no sense.
        """
        if self.has_index:
            try:
                yield from entries_of(read_long_string(self._open(), SENTENCE_INDEX))
            except ConfigurationError:
                raise
            except Exception as error:
                # Damaged files make h5py raise nearly every kind of error there is.
                raise ConfigurationError(
                    f"{self.path}: `{SENTENCE_INDEX}` can't be read: {error}"
                ) from None
        elif not self._is_numbered:
            yield from ((key, key) for key in self.keys())

    def read(self, key: str) -> numpy.ndarray:
        """
        Reads the vectors of a data set by its name. The shape is as in `LayerFile.__getitem__`.

        # Raises

        ConfigurationError
            If the data set holds no vectors that go with the file's facts, or is damaged.
        KeyError
            If there is none of that name.
        """
        return self._data_set(key).read()

    def token_sentences(self) -> Iterator[Tuple[List[str], str]]:
        """
        Yields the tokens of each sentence of `sentences`, with the name of its data set.

        # Raises

        ConfigurationError
            If tokens were pooled, or the file was written without its sentences; and as `sentences`
            does.
        """
        if self.facts.pool is not None:
            raise ConfigurationError(
                f"{self.path}: expected the vectors of tokens, but they were pooled to one a "
                "sentence. Export the text without --pool."
            )
        is_known = False
        for sentence, key in self.sentences():
            is_known = True
            yield sentence.split(), key
        if not is_known and len(self):
            raise ConfigurationError(
                f"{self.path}: expected a file that knows its sentences. Export the text without "
                "--forget-sentences."
            )

    def read_tokens(self, key: str, num_tokens: int) -> numpy.ndarray:
        """
        Reads the vectors of a sentence of `token_sentences`. Shape `(layers, num_tokens, width)`;
        `layers` is 1 if one layer was kept.

        # Raises

        ConfigurationError
            If the data set is missing, damaged, or has vectors of another number of tokens.
        """
        try:
            layers = self.read(key)
        except KeyError:
            raise ConfigurationError(
                f"{self.path}: `{SENTENCE_INDEX}` names the key {key!r}, but it is missing"
            ) from None
        if layers.ndim == 2:
            layers = layers[None]
        if layers.shape[1] != num_tokens:
            raise ConfigurationError(
                f"{self.path}: {key!r} has vectors of {layers.shape[1]} tokens, but its sentence "
                f"has {num_tokens} between spaces"
            )
        return layers

    def copy(self, key: str, file: h5py.File) -> int:
        """
        Copies the data set `key` to another file as it is stored here, and returns its
        `numbers_checksum`. Raises the errors of `read`.
        """
        data_set = self._data_set(key)
        data_set.copy(file)
        return data_set.checksum()

    def check(self) -> None:
        """
        Reads all vectors and the index of sentences, to see that they are what was written. Files
        of 0.2.0 and of AllenNLP 0.9 have no checksum: only damage that HDF5 notices shows there.
        Raises `ConfigurationError` if the file is damaged.
        """
        self.check_total(sum(self._data_set(key).checksum() for key in self.keys()))

    def check_total(self, checksums: int) -> None:
        """
        Checks the sum of the `numbers_checksum` of all data sets, and reads all else. Raises
        `ConfigurationError` if the file holds another sum.
        """
        try:
            checksums += facts_checksum(self.facts)
            if self.has_index:
                checksums += text_checksum(read_long_string(self._open(), SENTENCE_INDEX))
        except ConfigurationError:
            raise
        except Exception as error:
            raise unreadable(self.path, error) from None
        checksum = checksums % MODULUS
        if self._checksum not in (None, checksum):
            raise ConfigurationError(
                f"{self.path}: expected the numbers and sentences that were written, with the "
                f"checksum {self._checksum}, but theirs is {checksum}. The disk or a copy has "
                "damaged the file: copy it again, or make it anew."
            )

    def keys(self) -> Iterator[str]:
        """Yields the names of all data sets of vectors."""
        for name in self._open().id:
            if not self.has_index or name != SENTENCE_INDEX.encode():
                yield name.decode("utf-8", "surrogateescape")

    def _open(self) -> h5py.File:
        """Opens the file in this process, unless it is open."""
        if self._file is None or self._process != os.getpid():
            self.close()
            self._file, self._process = opened(self._place), os.getpid()
            stamp = stamp_of(self._place)
            if self._stamp not in (None, stamp):
                self.close()
                raise ConfigurationError(
                    f"{self.path}: another file took the place of the one that was opened first"
                )
            self._stamp = stamp
        return self._file

    def _data_set(self, key: str) -> DataSet:
        """Opens a data set and checks it against the facts."""
        data_set = DataSet(self._open(), key, str(self.path))
        if not self.facts.admits(data_set.shape) or data_set.dtype != self.facts.dtype:
            raise ConfigurationError(
                f"{self.path}: {key!r} has {data_set.dtype} numbers in the shape "
                f"{data_set.shape}, but the file says of itself {self.facts}"
            )
        return data_set

    def _key_of(self, sentence: str) -> Optional[str]:
        if self._index is None:
            self._index = SentenceIndex(self.sentences())
        place = self._index.find(sentence)
        return None if place is None else self._index.key(place)

    def _key_at(self, number: int) -> str:
        if not self._is_numbered:
            raise ConfigurationError(
                f"{self.path}: the keys are sentences, and the order of the lines is not known: "
                "ask for a sentence instead of a number"
            )
        place = number + self._first_number() + len(self) if number < 0 else number
        if str(place) in self._open():
            return str(place)
        raise IndexError(f"{self.path} holds {len(self)} sentences, but not number {number}")

    def _first_number(self) -> int:
        """The lowest line number; in the file of a shard it is not 0."""
        if self._first is None:
            is_from_0 = not self._is_numbered or "0" in self._open()
            numbers = (int(key) for key in self.keys() if LINE_NUMBER.fullmatch(key))
            self._first = 0 if is_from_0 else min(numbers, default=0)
        return self._first

    def _derived_facts(self) -> LayerFileFacts:
        """Derives facts from the first data set, for files without facts."""
        for key in self.keys():
            data_set = DataSet(self._open(), key, str(self.path))
            if data_set.shape and len(data_set.shape) <= 3:
                layers, kept = (data_set.shape[0], "all") if len(data_set.shape) == 3 else (1, "")
                width, dtype = data_set.shape[-1], data_set.dtype
                return LayerFileFacts("", "", kept, None, layers, width, dtype, "")
            break
        raise ConfigurationError(f"{self.path}: expected a file of layers, but it holds none")
