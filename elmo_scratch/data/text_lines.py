"""The lines of a UTF-8 text file, with an error that names the line where the text breaks."""

from io import BufferedReader
from os import PathLike
from typing import Iterator, List, Optional, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.unpacked import check_no_archive, damage_told, unpacked
from elmo_scratch.files.paths import located

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
        file = open(located(path), "rb")
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
