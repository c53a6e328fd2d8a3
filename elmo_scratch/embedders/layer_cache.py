"""
A cache of a frozen biLM's layers, in memory or in an LMDB file: the biLM reads each text once a
training, not once an epoch.
"""

import logging
import os
import zlib
from abc import ABC, abstractmethod
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple
from weakref import WeakValueDictionary

import lmdb
import numpy
import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.machine import free_memory, machine_memory
from elmo_scratch.kernels import (
    FrozenWeightCache,
    MixedPrecision,
    rows_are_independent,
    without_autocast,
)
from elmo_scratch.modules import BiLm, BiLmOutput
from elmo_scratch.modules.bilm import eval_mode
from elmo_scratch.modules.sequences import sentence_lengths
from elmo_scratch.modules.token_encoders.token_encoder import check_ids

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


COMPUTATION = 1
"""
Goes up when the package computes other numbers from the same weights: older entries are ignored.
"""

OF_ALL = frozenset(vars(torch.nn.Module()))
"""Attributes that every module has: its mode, its hooks, and tensors that are read separately."""


class KeptLayers(torch.nn.Module):
    """
    Runs a frozen biLM and caches the layers of each text in a store. Caching begins with the first
    batch of a training. A model that only evaluates or predicts caches nothing, nor do replicas of
    `torch.nn.DataParallel`, which can't tell which biLM they copy.

    Raises `ConfigurationError` if a sentence's layers depend on earlier sentences, or the biLM is
    trained.
    """

    def __init__(self, store: LayerStore, bilm: BiLm) -> None:
        super().__init__()
        _check_state(bilm)
        _check_frozen(bilm)
        self._store = store
        self._has_begun = False
        self._has_said = False
        self._identity = FrozenWeightCache[bytes]()

    def forward(self, bilm: BiLm, ids: torch.Tensor, mask: torch.Tensor) -> BiLmOutput:
        """
        Returns the output of `bilm`, which is not a submodule. `ids` have the shape `(batch,
        tokens)` or `(batch, tokens, characters)`, `mask` `(batch, tokens)`; real tokens come first
        in each row.

        Raises `ConfigurationError` if the layers can't be stored, or the biLM is trained or carries
        its state by now; `ValueError` if the ids are of an unsuitable type, or real tokens don't
        come first.
        """
        check_ids(ids, "tokens")
        self._has_begun = self._has_begun or self.training
        # The weights of a `DataParallel` replica are no parameters.
        if not self._has_begun or next(bilm.parameters(), None) is None:
            return bilm(ids, mask)
        _check_state(bilm)
        _check_frozen(bilm)
        lengths: List[int] = sentence_lengths(mask).tolist()
        keys = self._keys(bilm, ids, lengths)
        kept = {key: self._store.get(key) for key in keys}
        found = {key: layers for key, layers in kept.items() if layers is not None}
        # A text that comes twice in the batch is read once.
        missing = {key: row for row, key in enumerate(keys) if key not in found}
        if missing:
            self._say_what_is_equal(bilm)
            rows = list(missing.values())
            layers = self._read(bilm, ids[rows], mask[rows], [lengths[row] for row in rows])
            read = dict(zip(missing, layers))
            self._store.put(read)
            found.update(read)
        texts = [found[key] for key in keys]
        return self._together(texts, lengths, ids.size(1) + 2, bilm, ids.device)

    def _keys(self, bilm: BiLm, ids: torch.Tensor, lengths: List[int]) -> List[bytes]:
        """Returns the key of each text, made of its ids and the biLM."""
        # Workers of a distributed training write all buffers anew before each batch: they are
        # compared by their numbers.
        settings = (settings_of(bilm), *map(_bytes_of, bilm.buffers()))
        identity = self._identity.of(list(bilm.parameters()), settings, lambda: identity_of(bilm))
        rows = ids.cpu().to(torch.int32).numpy()
        return [
            identity + blake2b(row[:length].tobytes(), digest_size=16).digest()
            for row, length in zip(rows, lengths)
        ]

    def _say_what_is_equal(self, bilm: BiLm) -> None:
        """
        Logs once that a text's layers may depend on its batch in the last bits, where that is so.
        """
        if self._has_said:
            return
        self._has_said = True
        device = next(bilm.parameters()).device
        is_rounded = MixedPrecision.is_asked_for(bilm) and (
            MixedPrecision.used("bfloat16", device) == "bfloat16"
        )
        dtype = torch.bfloat16 if is_rounded else torch.float32
        if device.type != "cpu" or not rows_are_independent(dtype):
            logger.info(
                "On this machine the layers of a text depend within rounding on the texts that it "
                "is read with: those that are kept are of the batch in which it was read first."
            )

    def _read(
        self, bilm: BiLm, ids: torch.Tensor, mask: torch.Tensor, lengths: List[int]
    ) -> List[numpy.ndarray]:
        """Returns for each text an array of shape `(layers, positions of the text, width)`."""
        longest = max(lengths)
        # Layers that are cached for all epochs, or for other trainings, keep their full precision.
        with eval_mode(bilm), without_autocast(ids.device):
            output: BiLmOutput = bilm(ids[:, :longest], mask[:, :longest])
        layers = output.layers.float().cpu().numpy()
        return [
            numpy.ascontiguousarray(layers[:, row, : length + 2])
            for row, length in enumerate(lengths)
        ]

    def _together(
        self,
        found: List[numpy.ndarray],
        lengths: List[int],
        positions: int,
        bilm: BiLm,
        device: torch.device,
    ) -> BiLmOutput:
        """Pads the layers of texts to a batch of `positions` positions."""
        ends = torch.tensor(lengths, device="cpu").unsqueeze(1) + 2
        mask = torch.arange(positions, device="cpu") < ends  # (batch, positions)
        layers = numpy.zeros((bilm.num_layers, *mask.shape, bilm.width), dtype="float32")
        for row, (one, length) in enumerate(zip(found, lengths)):
            layers[:, row, : length + 2] = one.reshape(bilm.num_layers, length + 2, bilm.width)
        numbers = torch.from_numpy(layers).to(device, next(bilm.parameters()).dtype)
        return BiLmOutput(numbers, mask.to(device))


def _check_state(bilm: BiLm) -> None:
    """Refuses a biLM that starts each text from where the one before ended."""
    if bilm.state_memory.state == "carry":
        raise ConfigurationError(
            '`keep_layers` needs a biLM with the `state` "reset" or "warm": with "carry" '
            'the layers of a text depend on what was read before it. Set `state: "reset"`'
        )


def _check_frozen(bilm: BiLm) -> None:
    """Refuses a biLM that is trained: its layers of a text change from step to step."""
    if any(weight.requires_grad for weight in bilm.parameters()):
        raise ConfigurationError(
            "`keep_layers` needs a frozen biLM, but this one is trained. Leave `requires_grad` "
            "out (of a `module` of your own: `module.requires_grad_(False)`), or set `keep_layers` "
            "to null"
        )


def identity_of(bilm: BiLm) -> bytes:
    """
    Returns 16 bytes that are the same for biLMs that compute the same layers of every text. They
    are a digest of the weights, of all settings, and of the precision of products on this device.
    """
    digest = sha256(str(COMPUTATION).encode())
    if MixedPrecision.is_asked_for(bilm):
        device = next(bilm.parameters()).device
        digest.update(MixedPrecision.used("bfloat16", device).encode())
    digest.update(settings_of(bilm).encode())
    # Not those of `state_dict` alone: some are made anew by the constructor.
    for name, tensor in (*bilm.named_parameters(), *bilm.named_buffers()):
        digest.update(f"{name} {tuple(tensor.shape)} ".encode())
        digest.update(_bytes_of(tensor))
    return digest.digest()[:16]


def _bytes_of(tensor: torch.Tensor) -> bytes:
    """Returns a tensor's numbers; as bytes, because NumPy lacks some types of numbers."""
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()


def settings_of(bilm: BiLm) -> str:
    """
    Returns the class of each module and the numbers, strings and types that it is set to, also
    within lists and maps. Other objects count by their class alone.
    """
    described = [
        (
            name,
            type(module).__name__,
            sorted((key, _told(value)) for key, value in vars(module).items() if key not in OF_ALL),
        )
        for name, module in bilm.named_modules()
    ]
    return repr(described)


def _told(value: Any) -> str:
    """Returns a setting in a form that is the same in each process."""
    if isinstance(value, (bool, int, float, str, bytes, type(None))):
        return repr(value)
    if isinstance(value, (torch.dtype, torch.device)):
        return str(value)
    if isinstance(value, torch.Tensor):
        return repr((str(value.dtype), value.tolist()))
    if isinstance(value, dict):
        return repr(sorted((repr(key), _told(one)) for key, one in value.items()))
    if isinstance(value, (list, tuple)):
        return repr([_told(one) for one in value])
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(_told, value)))
    return type(value).__name__
