"""
What a file of layers says of itself, and its checksum.

The checksum is the attribute `checksum` of its root group, a sum of CRC-32 modulo 2^64. It doesn't
depend on the order in which data sets are written. It covers what HDF5 has no checksum for in the
form of 1.8: numbers, the index of sentences, and texts in attributes.
"""

import json
import re
import struct
import zlib
from numbers import Integral
from typing import Any, Dict, Iterable, NamedTuple, Optional, Tuple

import h5py
import numpy
from allennlp.common.checks import ConfigurationError
from h5py import h5t

from elmo_scratch.interop.layer_files.sentence_map import REFERENCE
from elmo_scratch.modules.lstm import STATES

CHOICES: Dict[str, Tuple[Any, ...]] = {
    "kept": ("all", "top", "average"),
    "pool": (None, "mean", "max"),
    "dtype": ("float32", "float16"),
    "state": STATES,
    "keys": (None, "sentences"),
}
"""The allowed values of the facts that are a choice."""


class LayerFileFacts(NamedTuple):
    """
    How the vectors of a layer file came about. The file stores each fact that is not `None` as an
    attribute of its root group.

    # Parameters

    model : `str`
        The identity of the biLM, `"sha256:..."`; empty if unknown.
    export : `str`
        The identity of all that the vectors depend on: biLM, text and settings; empty if unknown.
    kept : `str`
        `"all"` layers, the `"top"` layer or the `"average"` of the layers; empty if it is one of
        the last two, but unknown which.
    pool : `Optional[str]`
        `"mean"` or `"max"` over the tokens of a sentence; `None` keeps the tokens.
    layers : `int`
        How many layers the biLM has, the token layer included; 1 if unknown.
    width : `int`
        The size of a layer's vector.
    dtype : `str`
        `"float32"` or `"float16"`.
    state : `str`
        What sentences started from: `"carry"`, `"reset"` or `"warm"`; empty if unknown.
    keys : `Optional[str]`, optional (default = `None`)
        `"sentences"` if sentences are the keys of their vectors; `None` if line numbers are, or if
        unknown.
    """

    model: str
    export: str
    kept: str
    pool: Optional[str]
    layers: int
    width: int
    dtype: str
    state: str
    keys: Optional[str] = None

    @classmethod
    def read(cls, file: h5py.File, source: str) -> Optional["LayerFileFacts"]:
        """
        Reads the facts of a file; `None` if it has none (AllenNLP 0.9 wrote none). Raises
        `ConfigurationError` if only some are there, or one makes no sense.
        """
        found = {name: _value(file, name) for name in cls._fields if name in file.attrs}
        if not found:
            return None
        for name in cls._fields:
            value = found.setdefault(name, None)
            if name in ("layers", "width"):
                expected, is_right = "a size", isinstance(value, int) and value > 0
            elif name in CHOICES:
                expected, is_right = f"one of {CHOICES[name]}", value in CHOICES[name]
            else:
                expected, is_right = "a text", isinstance(value, str)
            if not is_right:
                raise ConfigurationError(
                    f"{source}: expected the attribute `{name}` to be {expected}, but got {value!r}"
                )
        return cls(**found)

    def write(self, file: h5py.File) -> None:
        """Stores the facts as attributes of a file's root group."""
        for name, value in self._asdict().items():
            if value is not None:
                file.attrs[name] = value

    def admits(self, shape: Tuple[int, ...]) -> bool:
        """Whether the vectors of one sentence can have this shape."""
        layers = (self.layers,) if self.kept == "all" else ()
        # A sentence may have any number of tokens.
        tokens = shape[len(layers) : len(layers) + 1] if self.pool is None else ()
        has_tokens = self.pool is not None or len(tokens) == 1
        return has_tokens and tuple(shape) == (*layers, *tokens, self.width)


def _value(file: h5py.File, name: str) -> Any:
    """An attribute that is a text or a whole number; `()`, which equals neither, for any other."""
    try:
        attribute = file.attrs.get_id(name)
        kind = attribute.get_type()
        is_text = isinstance(kind, h5t.TypeStringID) and kind.is_variable_str()
        is_plain = attribute.shape == () and not kind.committed()
        # The parts of other kinds could be texts of any length.
        if not is_plain or not (is_text or isinstance(kind, h5t.TypeIntegerID)):
            return ()
        value = file.attrs[name]
    except Exception:
        # Damaged files make h5py raise nearly every kind of error there is.
        return ()
    if isinstance(value, Integral):
        return int(value)
    return value if isinstance(value, str) else ()


CHECKSUM = "checksum"
"""The name of the attribute. Files of 0.2.0 and of AllenNLP 0.9 have none."""

MODULUS = 2**64


def stored_checksum(file: h5py.File) -> Any:
    """The attribute `checksum`; `None` if there is none, `()` if it makes no sense."""
    return _value(file, CHECKSUM) if CHECKSUM in file.attrs else None


ATTRIBUTE_NAME = re.compile(
    b"(?:%s)\0" % b"|".join(name.encode() for name in (*LayerFileFacts._fields, CHECKSUM))
)
ATTRIBUTE_HEADS = {1: (8, 8), 2: (8, 1), 3: (9, 1)}
"""By the version of an attribute: the bytes before its name, and what the sizes are padded to."""

VARIABLE_LENGTH = 9
"""The class of a type, in its first four bits, whose values lie in a global heap."""


def check_attributes(block: bytes, file_size: int) -> None:
    """
    Raises `ValueError` if a block of a file of so many bytes has a fact whose text is said to be
    longer than the file. HDF5 takes memory for as much before it looks at the text.

    # Source

    The HDF5 File Format Specification, IV.A.2.m "Attribute Message".
    """
    for found in ATTRIBUTE_NAME.finditer(block):
        start = found.start()
        for version, (head, step) in ATTRIBUTE_HEADS.items():
            if start < head or block[start - head] != version:
                continue
            flags, *sizes = struct.unpack_from("<BHHH", block, start - head + 1)
            # Version 1 has no flags. This package has never written a type apart from its values.
            if version > 1 and flags & 1:
                raise ValueError("expected an attribute beside its type")
            name_size, type_size, space_size = (size + -size % step for size in sizes)
            kind = start + name_size
            place = kind + type_size + space_size
            if place + REFERENCE.size <= len(block) and block[kind] & 15 == VARIABLE_LENGTH:
                length, _, _ = REFERENCE.unpack_from(block, place)
                if length > file_size:
                    raise ValueError(
                        f"an attribute is told to have {length} bytes, but the file has fewer"
                    )


def numbers_checksum(name: bytes, pieces: Iterable[numpy.ndarray]) -> int:
    """
    The CRC-32 of a data set's name, and its numbers as the file stores them: C-contiguous arrays of
    a little-endian type, end to end.
    """
    checksum = zlib.crc32(name)
    for piece in pieces:
        checksum = zlib.crc32(piece.data, checksum)
    return checksum


def text_checksum(pieces: Iterable[bytes]) -> int:
    """The CRC-32 of the bytes of `sentence_to_index`."""
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return checksum


def facts_checksum(facts: LayerFileFacts) -> int:
    """The CRC-32 of what a file says of itself, as JSON of the facts that are known."""
    known = {name: value for name, value in facts._asdict().items() if value is not None}
    return zlib.crc32(json.dumps(known, sort_keys=True).encode("utf-8"))
