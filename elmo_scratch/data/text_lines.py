"""The lines of a UTF-8 text file, with an error that names the line where the text breaks."""

from os import PathLike
from typing import Iterator, Optional, Union

from allennlp.common.checks import ConfigurationError

from elmo_scratch.located import located

BYTE_ORDER_MARK = "\ufeff"


def text_lines(path: Union[str, PathLike], name: Optional[str] = None) -> Iterator[str]:
    """
    Yields each line of `path` as text, its line end included.

    Only a line feed ends a line, so that line numbers agree with every editor even where a text
    holds one of Unicode's rarer separators. A byte order mark is dropped.

    # Parameters

    path : `Union[str, PathLike]`
        A file, or an address that AllenNLP's `cached_path` can fetch.
    name : `str`, optional (default = `path`)
        What errors call it.

    # Raises

    ConfigurationError
        If the file is missing, is a folder, holds nothing, or a line is not UTF-8.
    """
    name = name or str(path)
    try:
        file = open(located(path), "rb")
    except FileNotFoundError:
        raise ConfigurationError(f"{name}: there is no such file") from None
    except (IsADirectoryError, PermissionError) as error:
        raise ConfigurationError(f"{name}: cannot be read ({error.strerror})") from None
    except Exception as error:
        # Whatever library fetches an address, the error is one of its own kind.
        raise ConfigurationError(f"{name}: it can't be fetched: {error}") from None
    number = 0
    with file:
        for number, raw in enumerate(file, start=1):
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
