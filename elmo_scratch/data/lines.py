"""
Reads texts, plain or compressed, and cuts them into lines and tokens; and tells tables from texts,
by their names and by what their lines look like.
"""

import bz2
import csv
import functools
import gzip
import io
import logging
import lzma
import re
import zlib
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from itertools import islice
from os import PathLike, fspath
from pathlib import PurePath
from typing import (
    TYPE_CHECKING,
    Any,
    BinaryIO,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Tuple,
    Union,
    cast,
)

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.paths import resolve_path
from elmo_scratch_compat.bounds import LINE_SIZE

if TYPE_CHECKING:
    # The import takes seconds, and reading lines doesn't need it.
    from allennlp.data.tokenizers import Token, Tokenizer


logger = logging.getLogger(__name__)


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


MOST_OF_A_SIGN = 10
"""No sign of a form takes more bytes than this."""


class _ZstandardFile(io.RawIOBase):
    """
    The content of a Zstandard file, of one frame or several. Raises `ConfigurationError` if the
    package `zstandard` is missing; on reading, `EOFError` if the file was cut off.
    """

    READ_AT_ONCE = 2**17

    def __init__(self, fileobj: BinaryIO) -> None:
        super().__init__()
        try:
            import zstandard  # optional
        except ImportError:
            name = getattr(fileobj, "name", "the text")
            raise ConfigurationError(
                f"{name}: it is packed by Zstandard, which needs the package zstandard. Run: pip "
                "install zstandard"
            ) from None
        self._error = zstandard.ZstdError
        self._new_frame: Callable[[], Any] = zstandard.ZstdDecompressor().decompressobj
        self._file = fileobj
        self._frame: Optional[Any] = None
        self._packed = self._unpacked = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._unpacked:
            self._packed = self._packed or self._file.read(self.READ_AT_ONCE)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("Compressed file ended before the end of its last frame")
                return 0
            if self._frame is None:
                self._frame = self._new_frame()
            try:
                self._unpacked = self._frame.decompress(self._packed)
            except self._error as error:
                raise OSError(str(error)) from None
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        size = min(len(buffer), len(self._unpacked))
        buffer[:size], self._unpacked = self._unpacked[:size], self._unpacked[size:]
        return size


class _Form(NamedTuple):
    """A form of compressed files: the bytes that each begins with one of, and its reader."""

    signs: Tuple[bytes, ...]
    open: Callable[[BufferedReader], Any]


_BZIP2_BLOCKS = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")  # the last for no text at all

FORMS: Dict[str, _Form] = {
    "gzip": _Form((b"\x1f\x8b",), lambda file: gzip.GzipFile(fileobj=file)),
    "bzip2": _Form(
        tuple(b"BZh%d%s" % (level, block) for level in range(1, 10) for block in _BZIP2_BLOCKS),
        bz2.BZ2File,
    ),
    "xz": _Form((b"\xfd7zXZ\x00",), lzma.LZMAFile),
    "Zstandard": _Form(
        (b"\x28\xb5\x2f\xfd",), lambda file: BufferedReader(_ZstandardFile(file), 2**17)
    ),
}
"""What is unpacked."""

ENDINGS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "Zstandard"}
"""The form that the ending of a name promises."""

_ARCHIVES = {"zip": b"PK\x03\x04", "7-Zip": b"7z\xbc\xaf\x27\x1c"}
"""The first bytes of files that may hold several others."""

_TAR_MAGICS = (b"ustar\x0000", b"ustar  \x00")  # POSIX and GNU tar, at byte 257


def form_of(start: bytes) -> Optional[str]:
    """The name in `FORMS` of what begins with these bytes, at least `MOST_OF_A_SIGN` of them."""
    return next((name for name, form in FORMS.items() if start.startswith(form.signs)), None)


def unpacked(file: BufferedReader) -> BufferedReader:
    """
    The decompressed content if the file begins like one of `FORMS`, whatever its name is, and
    otherwise the file itself. The file is at its beginning and may be a pipe. Raises
    `ConfigurationError` if its form needs a package that is missing.
    """
    form = form_of(file.peek(MOST_OF_A_SIGN))
    return file if form is None else cast(BufferedReader, FORMS[form].open(file))


def check_no_archive(start: bytes, name: str) -> None:
    """
    Checks the decompressed start of a text: its first line or more. Raises `ConfigurationError` if
    it is an archive, because the names of its members would pass for words, or compressed once
    more. Errors call the text `name`.
    """
    if start[257:265] in _TAR_MAGICS:
        raise ConfigurationError(
            f"{name}: expected text, but this is a tar archive. Unpack it, and name the files in "
            "it."
        )
    kind = next((kind for kind, sign in _ARCHIVES.items() if start.startswith(sign)), None)
    kind = kind or form_of(start)
    if kind is not None:
        raise ConfigurationError(
            f"{name}: expected text, plain or packed once by {', '.join(FORMS)}, but this file is "
            f"packed by {kind}. Unpack it first."
        )


@contextmanager
def damage_told(name: str) -> Iterator[None]:
    """Raises `ConfigurationError` if the compressed file `name`, read in the block, is damaged."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        # The errors of the system have a number, those of the readers have none.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ConfigurationError(
            f"{name}: the compressed file is damaged or was cut off ({error}). Fetch or pack it "
            "again."
        ) from None


LOOKED_AT, FEWEST = 20, 5
"""Lines at the beginning of a text that are looked at, and the fewest that tell something."""

LONGEST = 2**16
"""Characters of a line that is looked at."""

SEPARATORS = {"\t": 2, ",": 3, ";": 3}
"""Separators of columns, and the fewest columns that don't come about in sentences by chance."""


def ending_of(name: Union[str, PathLike]) -> str:
    """
    The last ending of a file's name or an address in lower case, such as `".csv"`, without that of
    a packed file; `""` if it has none.
    """
    name = fspath(name)
    # What follows the path in an address.
    path = PurePath(re.sub("[?#].*", "", name) if "://" in name else name)
    is_packed = path.suffix.lower() in ENDINGS
    return (PurePath(path.stem) if is_packed else path).suffix.lower()


def told_of_rows(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yields the lines of the text `name`, and logs a warning if they look like rows of a table."""
    iterator = iter(lines)
    first: List[str] = []
    for line in islice(iterator, LOOKED_AT):
        first.append(line)
        yield line
    tell_rows(first, name)
    yield from iterator


def tell_rows(lines: Iterable[str], name: str) -> None:
    """Logs a warning if the first lines of the text `name` look like rows of a table."""
    kind = _kind_of(lines)
    if kind is not None:
        _tell(name, kind)


@functools.lru_cache(maxsize=None)
def _tell(name: str, kind: str) -> None:
    """Logs the warning. Each epoch reads a file anew; once is enough for the log."""
    logger.warning(
        "%s: the lines look like %s, but are read as text: separators, quotes and all columns "
        "become words. Write the sentences alone to a file, one a line.",
        name,
        kind,
    )


def _kind_of(lines: Iterable[str]) -> Optional[str]:
    """What lines look like that are no sentences; `None` if they may be sentences."""
    # Blank lines and comments part the sentences of treebanks.
    told = [line for line in islice(lines, LOOKED_AT) if line.strip() and line[0] != "#"]
    if len(told) < FEWEST or any(len(line) > LONGEST for line in told):
        return None
    if all(line.strip().startswith("{") and line.strip().endswith("}") for line in told):
        return "objects of JSON"
    for separator, fewest in SEPARATORS.items():
        try:
            rows = list(csv.reader(told, delimiter=separator))
        except csv.Error:  # A quote that opens a sentence may swallow all lines after it.
            continue
        if len(rows) > FEWEST:
            # Its end may be missing, where a quoted field holds line ends.
            rows.pop()
        widths = {len(row) for row in rows}
        if len(rows) >= FEWEST and len(widths) == 1 and min(widths) >= fewest:
            return f"rows of a table with {min(widths)} columns"
    return None
