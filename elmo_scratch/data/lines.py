"""Reads texts, plain or compressed, and cuts them into lines and tokens."""

from functools import partial
from io import BufferedReader
from os import PathLike
from typing import TYPE_CHECKING, Iterator, List, Optional, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.packed_files import check_no_archive, damage_told, unpacked
from elmo_scratch.data.tables import told_of_rows
from elmo_scratch.files.paths import resolve_path
from elmo_scratch_compat.bounds import LINE_SIZE

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


BYTE_ORDER_MARK = "\ufeff"

READ_AT_ONCE = 2**17
"""Bytes of text read at once."""


def text_lines(path: Union[str, PathLike], name: Optional[str] = None) -> Iterator[str]:
    """
    Yields each line of `path` as text, its line end included.

    A line ends with a line feed, a carriage return, or both, as in Python's own text files, in
    bilm-tf and in AllenNLP 0.9. Unicode's rarer separators don't end a line. A byte order mark is
    dropped.

    # Parameters

    path : `Union[str, PathLike]`
        A file, plain or compressed by one of `FORMS`, or an address that AllenNLP's `cached_path`
        can fetch.
    name : `str`, optional (default = `path`)
        The name of the file in errors.

    # Raises

    ConfigurationError
        If the file is missing, is a folder, can't be read to its end, holds nothing, is a damaged
        compressed file or an archive, or a line is not UTF-8 or longer than `LINE_SIZE` bytes.
    """
    name = name or str(path)
    number = 0
    try:
        with open(resolve_path(path), "rb") as file, damage_told(name):
            for raw in _raw_lines(unpacked(file)):
                number += 1
                if number == 1:
                    check_no_archive(raw, name)
                if len(raw) > LINE_SIZE:
                    raise too_long(name, number)
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


def _raw_lines(text: BufferedReader) -> Iterator[bytes]:
    """
    Yields the lines of a text, or the beginning of a line that is longer than `LINE_SIZE` bytes: a
    line of 2 GiB is packed into 2 MB.
    """
    # What came since the last end of a line. A line of many blocks is joined once.
    parts: List[bytes] = []
    size = 0
    # Not `read`, which would wait for a whole block of what comes through a pipe.
    for block in iter(partial(text.read1, READ_AT_ONCE), b""):
        if b"\n" in block or b"\r" in block or (parts and parts[-1].endswith(b"\r")):
            # For bytes `splitlines` knows only line feeds and carriage returns.
            lines = b"".join([*parts, block]).splitlines(keepends=True)
            # After a carriage return a line feed may follow, which belongs to it.
            parts = [] if block.endswith(b"\n") else [lines.pop()]
            size = len(parts[0]) if parts else 0
            yield from lines
        else:
            parts.append(block)
            size += len(block)
        if size > LINE_SIZE:
            break
    if parts:
        yield b"".join(parts)


def too_long(name: str, number: int) -> ConfigurationError:
    """The error for the line `number` of a text."""
    return ConfigurationError(
        f"{name}, line {number}: expected a line of at most {LINE_SIZE} bytes, but it is longer. "
        "Write a sentence a line."
    )


def split_lines(path: Union[str, PathLike]) -> Iterator[List[str]]:
    """
    Yields the words of each line that is not blank, split at white space. Raises
    `ConfigurationError` if `text_lines` does, or if all lines are blank.
    """
    is_blank = True
    for line in told_of_rows(text_lines(path), str(path)):
        if words := line.split():
            is_blank = False
            yield words
    if is_blank:
        raise ConfigurationError(f"{path}: expected sentences, but no line holds a token")
