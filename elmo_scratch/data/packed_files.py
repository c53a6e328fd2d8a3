"""Unpacks compressed texts, whatever their names are, and tells what is no text."""

import bz2
import gzip
import io
import lzma
import zlib
from contextlib import contextmanager
from io import BufferedReader
from typing import Any, BinaryIO, Callable, Dict, Iterator, NamedTuple, Optional, Tuple, cast

from allennlp.common.checks import ConfigurationError

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
