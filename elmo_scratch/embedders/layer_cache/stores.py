"""Stores of layers, in memory or in an LMDB file."""

import logging
import os
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Dict, Optional, Set, Tuple
from weakref import WeakValueDictionary

import lmdb
import numpy
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.machine import free_memory, machine_memory

logger = logging.getLogger(__name__)


class LayerStore(Registrable, ABC):
    """Stores layers under a key. Abstract."""

    default_implementation = "memory"

    @abstractmethod
    def get(self, key: bytes) -> Optional[numpy.ndarray]:
        """
        Returns a flat, read-only float32 array of shape `(n,)`; `None` if nothing is stored under
        `key`.
        """

    @abstractmethod
    def put(self, kept: Dict[bytes, numpy.ndarray]) -> None:
        """
        Stores float32 arrays of any shape by key. Those for which there is no room are dropped.
        Raises `ConfigurationError` if they can't be written.
        """


MOST_BYTES = 2**42
"""LMDB asks for a bound; the file only takes the room of its content."""

CHECKSUM = b" crc32"
"""
What follows an entry's key in the key of its checksum. Versions up to 0.2.0 wrote none, and find
the layers without looking at it.
"""

_OPENED: "WeakValueDictionary[Path, lmdb.Environment]" = WeakValueDictionary()
"""LMDB lets a process open a file once: all stores of a file share it."""


@LayerStore.register("file")
class FileStore(LayerStore):
    """
    Stores layers in a file, for this training and others: trainings with the same biLM find them
    there, even at the same time. Layers of several biLMs can share the file. A run that is killed
    damages nothing. An entry is never replaced, unless the disk has damaged it.

    Registered as a `LayerStore` with name "file".

    # Parameters

    path : `str`
        The file, an LMDB database. It is made when the first layers are stored, together with a
        file `PATH-lock`. Both can be removed when nobody uses them.

    # Raises

    ConfigurationError
        When layers are first read or stored, if the file can't be read and written.
    """

    def __init__(self, path: str) -> None:
        # The process may change its working folder.
        self._path = Path(os.path.expanduser(path)).absolute()
        self._opened: Optional[lmdb.Environment] = None
        self._damaged: Set[bytes] = set()

    def __reduce__(self) -> Tuple[type, Tuple[str]]:
        """An opened file can't be copied: each copy opens it for itself."""
        return type(self), (str(self._path),)

    def get(self, key: bytes) -> Optional[numpy.ndarray]:
        try:
            with self._environment.begin() as transaction:
                found = transaction.get(key)
                checksum = transaction.get(key + CHECKSUM)
        except lmdb.Error as error:
            raise ConfigurationError(
                f"{self._path}: the layers that are kept can't be read: {error}. Remove the file "
                "or choose another place by `keep_layers`."
            ) from None
        if found is None:
            return None
        if checksum is not None and checksum != _checksum_of(found):
            if not self._damaged:
                logger.warning("%s: some layers are damaged; they are made anew", self._path)
            self._damaged.add(key)
            return None
        return numpy.frombuffer(found, dtype="<f4")

    def put(self, kept: Dict[bytes, numpy.ndarray]) -> None:
        try:
            with self._environment.begin(write=True) as transaction:
                for key, layers in kept.items():
                    # Another training may have stored the same: a second copy would only take room.
                    numbers = layers.astype("<f4", copy=False).tobytes()
                    if transaction.put(key, numbers, overwrite=key in self._damaged):
                        transaction.put(key + CHECKSUM, _checksum_of(numbers))
            self._damaged -= kept.keys()
        except (lmdb.Error, OSError) as error:
            raise ConfigurationError(
                f"{self._path}: the layers can't be kept: {error}. What was kept before is whole. "
                "Make room, or choose another place by `keep_layers`."
            ) from None

    @property
    def _environment(self) -> lmdb.Environment:
        if self._opened is None:
            file = self._path.resolve()
            self._opened = _OPENED.get(file) or self._open()
            _OPENED[file] = self._opened
        return self._opened

    def _open(self) -> lmdb.Environment:
        """Opens the file, and makes it if there is none."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            opened = lmdb.open(str(self._path), subdir=False, map_size=MOST_BYTES, readahead=False)
        except lmdb.MemoryError as error:
            raise ConfigurationError(
                f"{self._path}: can't be opened, as the process may not have the addresses of so "
                f"large a file, 4 TiB: {error}. Raise that limit (`ulimit -v unlimited`), or keep "
                'layers in "memory".'
            ) from None
        except (lmdb.Error, OSError) as error:
            raise ConfigurationError(
                f"{self._path}: expected a file of kept layers, or none yet, but: {error}"
            ) from None
        # Reading beyond the end of a mapped file would kill the process without a message.
        expected = (opened.info()["last_pgno"] + 1) * opened.stat()["psize"]
        found = self._path.stat().st_size
        if found < expected:
            opened.close()
            raise ConfigurationError(
                f"{self._path}: expected {expected} bytes of kept layers, but the file ends after "
                f"{found}, as one that was not copied to its end. Remove it, or copy it again."
            )
        return opened


def _checksum_of(numbers: bytes) -> bytes:
    return zlib.crc32(numbers).to_bytes(4, "little")


RESERVE = 0.1
"""The share of the machine's memory that stays free, whatever other processes use."""


@LayerStore.register("memory")
class MemoryStore(LayerStore):
    """
    Stores layers in memory, until they reach their share of it or hardly any is free. It logs a
    warning then, and stores nothing while that is so.

    Registered as a `LayerStore` with name "memory".

    # Parameters

    share : `float`, optional (default = `0.5`)
        The largest share of the machine's memory for layers, above 0 and at most 1.

    # Raises

    ConfigurationError
        If `share` is out of its range.
    """

    def __init__(self, share: float = 0.5) -> None:
        if not 0.0 < share <= 1.0:
            raise ConfigurationError(f"expected a `share` above 0 and at most 1, but got {share}")
        self._share = share
        total = machine_memory()
        self._room, self._reserve = share * total, RESERVE * total
        self._kept: Dict[bytes, numpy.ndarray] = {}
        self._has_warned = False

    def __reduce__(self) -> Tuple[type, Tuple[float]]:
        """Copies and pickles start empty: the layers may be half of the memory."""
        return type(self), (self._share,)

    def get(self, key: bytes) -> Optional[numpy.ndarray]:
        return self._kept.get(key)

    def put(self, kept: Dict[bytes, numpy.ndarray]) -> None:
        if free_memory() < self._reserve:
            self._say(
                "hardly any memory is left: texts pass the biLM in each epoch until there is more"
            )
            return
        for key, layers in kept.items():
            if layers.nbytes > self._room:
                self._say(
                    "there is no room for more: all other texts pass the biLM in each epoch, "
                    "unless they get a larger `share` of the memory"
                )
                continue
            self._room -= layers.nbytes
            self._kept[key] = layers.ravel()

    def _say(self, reason: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "The layers of %d texts are in memory, and %s. A file has room for all: "
                '`keep_layers: { type: "file", path: ... }`.',
                len(self._kept),
                reason,
            )
