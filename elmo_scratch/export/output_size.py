"""How large an export will be, and whether there is room for it."""

import logging
import shutil
from pathlib import Path

from allennlp.common.checks import ConfigurationError

logger = logging.getLogger(__name__)

UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")

BYTES_A_DATA_SET = 350
"""What HDF5 notes of each data set, at most: 350 with a few hundred, 300 with many."""


def estimated_size(num_vectors_bytes: int, num_sentences: int) -> int:
    """
    # Parameters

    num_vectors_bytes : `int`
        What the vectors take, in bytes.
    num_sentences : `int`
        How many data sets hold them.
    """
    return num_vectors_bytes + BYTES_A_DATA_SET * num_sentences


def in_words(num_bytes: float) -> str:
    """A size with its unit, in steps of 1,000."""
    for unit in UNITS:
        if num_bytes < 1000 or unit == UNITS[-1]:
            break
        num_bytes /= 1000
    return f"{num_bytes:.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"


def check_room(
    output_file: Path, size: int, *, num_copies: int = 1, num_there: int = 0, is_compressed: bool
) -> None:
    """
    # Parameters

    output_file : `Path`
        Where the output will be.
    size : `int`
        Its estimated size, in bytes.
    num_copies : `int`, optional (default = `1`)
        How often there must be room for that: 2 where the output is put together of parts.
    num_there : `int`, optional (default = `0`)
        How many bytes are there already.
    is_compressed : `bool`
        Whether it may be smaller than that; then nothing is checked.

    # Raises

    ConfigurationError
        If there isn't room for it.
    """
    try:
        free = shutil.disk_usage(output_file.parent).free
    except OSError:
        return
    if is_compressed:
        return
    if num_copies * size - num_there > free:
        twice = ", and twice that while its parts are put together" if num_copies == 2 else ""
        raise ConfigurationError(
            f"{output_file}: the output would take about {in_words(size)}{twice}, but only "
            f"{in_words(free)} are free there. --dtype float16 halves it, --top or --average "
            "(`output_format`) keep one layer, --pool one vector a sentence, --compression is "
            "slower but smaller."
        )
    if 2 * size - num_there > free:
        logger.warning(
            "%s: %s are free there, not twice what the output takes: that is needed if it takes "
            "more than some minutes, when the parts are put together. They stay until then.",
            output_file,
            in_words(free),
        )
