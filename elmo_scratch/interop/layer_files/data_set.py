"""A data set of the vectors of a sentence, in a file that may come from anyone."""

from typing import Optional, Tuple

import h5py
import numpy
from allennlp.common.checks import ConfigurationError
from h5py import h5d, h5l, h5o, h5p, h5s, h5t

from elmo_scratch.interop.layer_files.keys import is_key
from elmo_scratch.interop.official.stored_size import refused_size

KINDS = {2: "float16", 4: "float32", 8: "float64"}
"""The types of vectors by their bytes."""


class DataSet:
    """
    Only numbers that lie in the file itself are read, and never more than fits to what is stored.

    # Parameters

    file : `h5py.File`
        The file.
    key : `str`
        The name of the data set.
    source : `str`
        The file's name, for error messages.

    # Raises

    KeyError
        If there is nothing of that name.
    ConfigurationError
        If it holds no vectors.
    """

    def __init__(self, file: h5py.File, key: str, source: str) -> None:
        self._place = f"{source}: {key!r}"
        self._file = file
        self._name = key.encode("utf-8", "surrogateescape")
        # HDF5 would take a path for a path, and nothing after a NUL for part of the name.
        if not is_key(key):
            raise KeyError(key)
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
        """
        The vectors.

        # Raises

        ConfigurationError
            If the file is damaged.
        """
        vectors = numpy.empty(self.shape, self.dtype)
        try:
            if vectors.size:
                self._found.read(h5s.ALL, h5s.ALL, vectors)
        except Exception as error:
            raise self._damage(error) from None
        return vectors

    def copy(self, file: h5py.File) -> None:
        """
        Copies it, as it is stored, to another file.

        # Raises

        ConfigurationError
            If the file is damaged.
        """
        try:
            h5o.copy(self._file.id, self._name, file.id, self._name)
        except Exception as error:
            raise self._damage(error) from None

    def _open(self) -> Optional[h5d.DatasetID]:
        """The data set, if it is there and fit to be read."""
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
        self._check_place(found.get_create_plist())
        self._check_size(found)
        return found

    def _check_place(self, properties: h5p.PropDCID) -> None:
        """Refuses numbers that lie elsewhere than in the file."""
        layout = properties.get_layout()
        if layout not in (h5d.COMPACT, h5d.CONTIGUOUS, h5d.CHUNKED):
            raise self._refusal("stored in other files")
        if layout == h5d.CONTIGUOUS and properties.get_external_count():
            raise self._refusal("stored in another file")

    def _check_size(self, found: h5d.DatasetID) -> None:
        """Refuses what would take far more memory than the file can have numbers for."""
        reason = refused_size(self._file, found)
        if reason:
            raise ConfigurationError(f"{self._place} has the shape {self.shape} and {reason}")

    def _refusal(self, what: str) -> ConfigurationError:
        """What to raise for something else than vectors."""
        return ConfigurationError(
            f"{self._place}: expected vectors, a data set of numbers with a fraction, but it is "
            f"{what}"
        )

    def _damage(self, error: Exception) -> ConfigurationError:
        """What to raise for what HDF5 can't read."""
        return ConfigurationError(
            f"{self._place} can't be read; the file is damaged or was not copied to its end. "
            f"{error}"
        )
