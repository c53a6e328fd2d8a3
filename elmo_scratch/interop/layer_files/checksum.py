"""
The checksum of a layer file: the attribute `checksum` of its root group, a sum of CRC-32 modulo
2^64. It doesn't depend on the order in which data sets are written. It covers what HDF5 has no
checksum for in the form of 1.8: numbers, the index of sentences, and texts in attributes.
"""

import json
import zlib
from typing import Iterable

import numpy

from elmo_scratch.interop.layer_files.facts import LayerFileFacts

CHECKSUM = "checksum"
"""The name of the attribute. Files of 0.2.0 and of AllenNLP 0.9 have none."""

MODULUS = 2**64


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
