"""Reads and decompresses texts, and cuts them into lines and tokens."""

import gzip
import zlib
from contextlib import contextmanager
from io import BufferedReader
from os import PathLike
from typing import TYPE_CHECKING, BinaryIO, Iterator, List, Optional, Union, cast

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.paths import resolve_path

if TYPE_CHECKING:
    # The import takes seconds, and reading lines doesn't need it.
    from allennlp.data.tokenizers import Token, Tokenizer


def line_tokens(tokenizer: "Tokenizer", text: str) -> List["Token"]:
    """
    The tokens of a text that hold something. White space around the text is stripped first,
    whatever the tokenizer makes of white space.
    """
    text = text.strip()
    return [token for token in tokenizer.tokenize(text) if token.text != ""] if text else []


def check_max_tokens(max_tokens: Optional[int]) -> None:
    """
    Raises `ConfigurationError` if a config's `max_tokens` is below 1: a negative one would cut off
    the end of each text.
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
"""The magic bytes of other compressed files and their offsets."""

_TAR_MAGICS = (b"ustar\x0000", b"ustar  \x00")  # POSIX and GNU tar, at byte 257


def unpacked(file: BufferedReader) -> BinaryIO:
    """
    The decompressed content if the file begins like a gzip file, whatever its name is, and
    otherwise the file itself. The file is at its beginning and may be a pipe.
    """
    if file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    return file


def check_no_archive(start: bytes, name: str) -> None:
    """
    Checks the decompressed start of a text: its first line or more. Raises `ConfigurationError` if
    it is a tar archive, because the names of its members would pass for words, or if it is
    compressed otherwise than by gzip. Errors call the text `name`.
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
    """Raises `ConfigurationError` if the gzip file `name`, read in the block, is damaged."""
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

    A line ends with a line feed, a carriage return, or both, as in Python's own text files, in
    bilm-tf and in AllenNLP 0.9. Unicode's rarer separators don't end a line. A byte order mark is
    dropped.

    # Parameters

    path : `Union[str, PathLike]`
        A file, plain or compressed by gzip, or an address that AllenNLP's `cached_path` can fetch.
    name : `str`, optional (default = `path`)
        The name of the file in errors.

    # Raises

    ConfigurationError
        If the file is missing, is a folder, can't be read to its end, holds nothing, is a damaged
        gzip file or a tar archive, or a line is not UTF-8.
    """
    name = name or str(path)
    number = 0
    try:
        with open(resolve_path(path), "rb") as file, damage_told(name):
            for block in unpacked(file):
                # For bytes `splitlines` knows only line feeds and carriage returns.
                for raw in block.splitlines(keepends=True):
                    number += 1
                    if number == 1:
                        check_no_archive(raw, name)
                    line = raw.decode("utf-8")
                    yield line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{name}, line {number}: expected UTF-8 text, but byte {error.start + 1} of the line "
            f"is 0x{raw[error.start]:02x}. Convert the file to UTF-8 first."
        ) from None
    except FileNotFoundError:
        raise ConfigurationError(f"{name}: there is no such file") from None
    except OSError as error:
        raise ConfigurationError(f"{name}: cannot be read ({error.strerror or error})") from None
    if number == 0:
        raise ConfigurationError(f"{name}: expected at least one line of text, but it is empty")


def split_lines(path: Union[str, PathLike]) -> Iterator[List[str]]:
    """
    Yields the words of each line that is not blank, split at white space. Raises
    `ConfigurationError` if `text_lines` does, or if all lines are blank.
    """
    is_blank = True
    for line in text_lines(path):
        if words := line.split():
            is_blank = False
            yield words
    if is_blank:
        raise ConfigurationError(f"{path}: expected sentences, but no line holds a token")
