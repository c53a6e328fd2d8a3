"""Reads static word vectors in word2vec's binary format: sizes, then words and bytes of numbers."""

import re
from os import PathLike
from typing import BinaryIO, Iterator, Tuple, Union

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.packed_files import damage_told, unpacked
from elmo_scratch.files.paths import resolve_path

_SIZES = re.compile(rb"([0-9]{1,12}) ([0-9]{1,7})[ \r]*\n")
"""The first line: the number of words, and the size of a vector."""

_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""Some 7 % of the bytes of numbers, and hardly any of a text."""

READ_AT_ONCE, LONGEST_WORD = 2**20, 2**16
"""Bytes."""


def is_binary(path: Union[str, PathLike]) -> bool:
    """
    Whether a file, plain or compressed, is in the binary format, by its beginning. What can't be
    read is not.
    """
    try:
        with open(resolve_path(path), "rb") as file, damage_told(str(path)):
            text = unpacked(file)
            sizes = _SIZES.fullmatch(text.readline(LONGEST_WORD))
            start = text.read(LONGEST_WORD)
    except (OSError, ConfigurationError):
        return False
    return sizes is not None and 100 * len(_CONTROLS.findall(start)) > len(start)


def binary_vectors(path: Union[str, PathLike]) -> Iterator[Tuple[bytes, numpy.ndarray]]:
    """
    Yields the words of a binary file, as bytes, and their vectors, float32 of shape `(dim,)`.
    Raises `ConfigurationError` if the file is damaged, has fewer words than it says, or more, or if
    a number is NaN or infinite.
    """
    with open(resolve_path(path), "rb") as file, damage_told(str(path)):
        text = unpacked(file)
        sizes = _SIZES.fullmatch(text.readline(LONGEST_WORD))
        if sizes is None:
            raise ConfigurationError(f"{path}: expected the number of words and their size first")
        num_words, dim = int(sizes[1]), int(sizes[2])
        yield from _vectors(text, str(path), num_words, dim)


def _vectors(
    text: BinaryIO, path: str, num_words: int, dim: int
) -> Iterator[Tuple[bytes, numpy.ndarray]]:
    size = 4 * dim
    block, place = b"", 0
    for number in range(1, num_words + 1):
        space = block.find(b" ", place)
        while space < 0 or space + 1 + size > len(block):
            more = text.read(READ_AT_ONCE)
            if not more or (space < 0 and len(block) - place > LONGEST_WORD):
                raise ConfigurationError(
                    f"{path}, word {number}: expected {num_words} words with {dim} numbers each, "
                    "by its first line, but no such word follows. Is the file whole?"
                )
            block, place = block[place:] + more, 0
            space = block.find(b" ", place)
        # word2vec itself ends each vector with a line feed, gensim doesn't.
        word = block[place:space].lstrip(b"\n")
        vector = numpy.frombuffer(block, "<f4", dim, space + 1)
        check_finite(vector, f"{path}, word {number}")
        yield word, vector
        place = space + 1 + size
    if (block[place:] + text.read(LONGEST_WORD)).strip():
        raise ConfigurationError(
            f"{path}: expected {num_words} words with {dim} numbers each, by its first line, but "
            "more follows"
        )


def check_finite(vector: numpy.ndarray, place: str) -> None:
    """Raises `ConfigurationError` if a number of the vector at this place is NaN or infinite."""
    if not numpy.isfinite(vector).all():
        number = vector[~numpy.isfinite(vector)][0]
        raise ConfigurationError(
            f"{place}: expected numbers, but one is {number}. A training that starts from it would "
            "diverge: leave the word out, or make the vectors anew"
        )
