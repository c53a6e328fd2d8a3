"""The ids of the characters of words, remembered: texts repeat theirs."""

from functools import lru_cache
from typing import Iterable

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import CHARACTERS_PER_TOKEN, character_ids

WORDS_REMEMBERED = 2**16
"""At some 250 bytes each."""


def check_max_characters(max_characters: int) -> None:
    """
    # Parameters

    max_characters : `int`
        Ids of a word, marks and padding included.

    # Raises

    ConfigurationError
        If it is none of `CHARACTERS_PER_TOKEN`.
    """
    if max_characters not in CHARACTERS_PER_TOKEN:
        raise ConfigurationError(
            f"expected `max_characters_per_token` from {CHARACTERS_PER_TOKEN[0]} to "
            f"{CHARACTERS_PER_TOKEN[-1]}, but got {max_characters}"
        )


@lru_cache(maxsize=WORDS_REMEMBERED)
def spelled_word(word: str, max_characters: int) -> numpy.ndarray:
    """
    # Parameters

    word : `str`
        As in `character_ids`.
    max_characters : `int`
        How many ids to return.

    # Returns

    `numpy.ndarray`
        Shape `(characters,)`, int16: what `character_ids` gives. It can't be written to.
    """
    spelled = numpy.array(character_ids(word, max_characters), dtype=numpy.int16)
    spelled.setflags(write=False)
    return spelled


def spelled_words(words: Iterable[str], max_characters: int) -> numpy.ndarray:
    """
    # Parameters

    words : `Iterable[str]`
        Any words.
    max_characters : `int`
        How many ids each has.

    # Returns

    `numpy.ndarray`
        Shape `(words, characters)`, int16. It can't be written to.
    """
    rows = b"".join([spelled_word(word, max_characters) for word in words])  # type: ignore[misc]
    return numpy.frombuffer(rows, dtype=numpy.int16).reshape(-1, max_characters)
