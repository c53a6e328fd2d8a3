"""Text files that may be packed by gzip."""

import gzip
import zlib
from contextlib import contextmanager
from io import BufferedReader
from typing import BinaryIO, Iterator, cast

from allennlp.common.checks import ConfigurationError

GZIP_MAGIC = b"\x1f\x8b"

_PACKED = {
    "bzip2": (4, b"1AY&SY"),
    "xz": (0, b"\xfd7zXZ\x00"),
    "Zstandard": (0, b"\x28\xb5\x2f\xfd"),
    "zip": (0, b"PK\x03\x04"),
    "7-Zip": (0, b"7z\xbc\xaf\x27\x1c"),
}
"""Where files of other kinds have which bytes."""

_TAR_MAGICS = (b"ustar\x0000", b"ustar  \x00")  # of POSIX and of GNU tar, at byte 257


def unpacked(file: BufferedReader) -> BinaryIO:
    """
    # Parameters

    file : `BufferedReader`
        At its beginning. It may be a pipe.

    # Returns

    `BinaryIO`
        What is in it if it begins like a gzip file, whatever its name is, and otherwise itself.
    """
    if file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    return file


def check_no_archive(start: bytes, name: str) -> None:
    """
    # Parameters

    start : `bytes`
        What a text begins with, unpacked: its first line or more.
    name : `str`
        What errors call it.

    # Raises

    ConfigurationError
        If it is a tar archive: the names of its members would pass for words. Or if it is packed
        in another way than by gzip.
    """
    if start[257:265] in _TAR_MAGICS:
        raise ConfigurationError(
            f"{name}: expected text, but this is a tar archive. Unpack it, and name the files in "
            "it."
        )
    for kind, (place, magic) in _PACKED.items():
        if start[place:].startswith(magic):
            raise ConfigurationError(
                f"{name}: expected text, plain or packed by gzip, but this file is packed by "
                f"{kind}. Unpack it first."
            )


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """
    # Parameters

    name : `str`
        Of the file that is unpacked in the block.

    # Raises

    ConfigurationError
        If it is a damaged gzip file.
    """
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ConfigurationError(
            f"{name}: the gzip file is damaged or was cut off ({error}). Fetch or pack it again."
        ) from None
