"""The text of a shard, many lines at a time."""

from pathlib import Path
from typing import Callable, Iterator, Optional

from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.text_lines import BYTE_ORDER_MARK
from elmo_scratch.data.unpacked import check_no_archive, damage_told, unpacked

BLOCK_SIZE = 2**18
"""Bytes of text that are read at once: many lines, and still in the processor's cache."""


def shard_blocks(shard: Path, on_read: Optional[Callable[[int], object]] = None) -> Iterator[str]:
    """
    Yields the text of a shard in blocks of whole lines. A line ends as in `text_lines`, with
    whatever there, and with a line feed here; the last one may lack it. A byte order mark at the
    beginning is dropped. An empty shard has no blocks.

    # Parameters

    shard : `Path`
        A text file, plain or compressed by gzip.
    on_read : `Callable[[int], object]`, optional (default = `None`)
        Is told after each block how many more bytes of the file were read, as it lies on the disk.

    # Raises

    ConfigurationError
        If the shard can't be read, is a damaged gzip file or a tar archive, or a line is not UTF-8.
    """
    try:
        file = open(shard, "rb")
    except OSError as error:
        raise ConfigurationError(f"{shard}: cannot be read ({error.strerror})") from None
    with file:
        text_file = unpacked(file)
        if text_file is file and shard.suffix == ".gz" and file.peek(1):
            raise ConfigurationError(
                f"{shard}: expected a gzip file, as its name says, but it doesn't begin like one. "
                "Rename it if it is plain text."
            )
        lines_before = 0
        reported = 0
        while True:
            with damage_told(str(shard)):
                raw = text_file.read(BLOCK_SIZE) + text_file.readline()
            if not raw:
                break
            if lines_before == 0:
                check_no_archive(raw, str(shard))
            if b"\r" in raw:
                raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            text = _decoded(raw, shard, lines_before)
            yield text.removeprefix(BYTE_ORDER_MARK) if lines_before == 0 else text
            lines_before += raw.count(b"\n")
            if on_read is not None:
                position = file.tell()
                on_read(position - reported)
                reported = position


def _decoded(raw: bytes, shard: Path, lines_before: int) -> str:
    """Whole lines as text."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = lines_before + raw.count(b"\n", 0, error.start) + 1
        byte = error.start - raw.rfind(b"\n", 0, error.start)
        raise ConfigurationError(
            f"{shard}, line {line}: expected UTF-8 text, but byte {byte} of the line is "
            f"0x{raw[error.start]:02x}. Convert the file to UTF-8 first."
        ) from None
