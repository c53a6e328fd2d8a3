"""Text files that may be packed by gzip."""

import gzip
import zlib
from contextlib import contextmanager
from io import BufferedReader
from typing import BinaryIO, Iterator, cast

from allennlp.common.checks import ConfigurationError

GZIP_MAGIC = b"\x1f\x8b"

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
        If it is a tar archive: the names of its members would pass for words.
    """
    if start[257:265] in _TAR_MAGICS:
        raise ConfigurationError(
            f"{name}: expected text, but this is a tar archive. Unpack it, and name the files in "
            "it."
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
