"""Texts and lines: read, unpacked and cut into tokens."""

import gzip
import zlib
from contextlib import contextmanager
from io import BufferedReader
from os import PathLike
from typing import TYPE_CHECKING, BinaryIO, Iterator, List, Optional, Union, cast

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.paths import resolve_path

if TYPE_CHECKING:
    # It takes seconds to import, and who only reads lines doesn't need it.
    from allennlp.data.tokenizers import Token, Tokenizer


def line_tokens(tokenizer: "Tokenizer", text: str) -> List["Token"]:
    """
    # Parameters

    tokenizer : `Tokenizer`
        Splits the text.
    text : `str`
        White space around it is no part of it, whatever the tokenizer makes of white space.

    # Returns

    `List[Token]`
        Those that hold something.
    """
    text = text.strip()
    return [token for token in tokenizer.tokenize(text) if token.text != ""] if text else []


def check_max_tokens(max_tokens: Optional[int]) -> None:
    """
    # Parameters

    max_tokens : `Optional[int]`
        What a config asks for; `None` for all.

    # Raises

    ConfigurationError
        If it is below 1. A negative one would cut off the end of each text.
    """
    if max_tokens is not None and max_tokens < 1:
        raise ConfigurationError(f"expected `max_tokens` of at least 1, but got {max_tokens}")


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


BYTE_ORDER_MARK = "\ufeff"


def text_lines(path: Union[str, PathLike], name: Optional[str] = None) -> Iterator[str]:
    """
    Yields each line of `path` as text, its line end included.

    A line feed ends a line, a carriage return, or both, as in Python's own text files, and so for
    bilm-tf and AllenNLP 0.9; none of Unicode's rarer separators does. A byte order mark is dropped.

    # Parameters

    path : `Union[str, PathLike]`
        A file, plain or packed by gzip, or an address that AllenNLP's `cached_path` can fetch.
    name : `str`, optional (default = `path`)
        What errors call it.

    # Raises

    ConfigurationError
        If the file is missing, is a folder, can't be read to its end, holds nothing, is a damaged
        gzip file or a tar archive, or a line is not UTF-8.
    """
    name = name or str(path)
    try:
        file = open(resolve_path(path), "rb")
    except FileNotFoundError:
        raise ConfigurationError(f"{name}: there is no such file") from None
    except OSError as error:
        raise ConfigurationError(f"{name}: cannot be read ({error.strerror})") from None
    number = 0
    with file:
        for number, raw in enumerate(_raw_lines(file, name), start=1):
            if number == 1:
                check_no_archive(raw, name)
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ConfigurationError(
                    f"{name}, line {number}: expected UTF-8 text, but byte {error.start + 1} of "
                    f"the line is 0x{raw[error.start]:02x}. Convert the file to UTF-8 first."
                ) from None
            yield line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
    if number == 0:
        raise ConfigurationError(f"{name}: expected at least one line of text, but it is empty")


def split_lines(path: Union[str, PathLike]) -> Iterator[List[str]]:
    """
    Yields what white space separates in each line that is not blank.

    # Parameters

    path : `Union[str, PathLike]`
        As in `text_lines`.

    # Raises

    ConfigurationError
        As there, and if all lines are blank.
    """
    is_blank = True
    for line in text_lines(path):
        if words := line.split():
            is_blank = False
            yield words
    if is_blank:
        raise ConfigurationError(f"{path}: expected sentences, but no line holds a token")


def _raw_lines(file: BufferedReader, name: str) -> Iterator[bytes]:
    """The lines as bytes."""
    try:
        with damage_told(name):
            for raw in unpacked(file):
                # Of bytes, only these two are line ends.
                yield from raw.splitlines(keepends=True)
    except OSError as error:
        raise ConfigurationError(f"{name}: cannot be read ({error.strerror or error})") from None
