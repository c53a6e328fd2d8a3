"""Spells words as ids of characters, each word once."""

from collections.abc import Collection, Mapping, Set
from functools import lru_cache
from itertools import chain
from typing import Iterable, Sequence

import numpy
import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import CHARACTERS_PER_TOKEN, MAX_CHARACTERS_PER_TOKEN, character_ids

WORDS_REMEMBERED = 2**16
"""Cached words, at some 250 bytes each."""


def check_max_characters(max_characters: int) -> None:
    """
    Raises `ConfigurationError` unless the ids of a word, marks and padding included, are as many as
    `CHARACTERS_PER_TOKEN` allows.
    """
    if max_characters not in CHARACTERS_PER_TOKEN:
        raise ConfigurationError(
            f"expected `max_characters_per_token` from {CHARACTERS_PER_TOKEN[0]} to "
            f"{CHARACTERS_PER_TOKEN[-1]}, but got {max_characters}"
        )


@lru_cache(maxsize=WORDS_REMEMBERED)
def spelled_word(word: str, max_characters: int) -> numpy.ndarray:
    """The ids of `character_ids` as a read-only array of shape `(max_characters,)`, int16."""
    spelled = numpy.array(character_ids(word, max_characters), dtype=numpy.int16)
    spelled.setflags(write=False)
    return spelled


def spelled_words(words: Iterable[str], max_characters: int) -> numpy.ndarray:
    """Spells any words as a read-only array of shape `(words, max_characters)`, int16."""
    rows = b"".join([spelled_word(word, max_characters) for word in words])  # type: ignore[misc]
    return numpy.frombuffer(rows, dtype=numpy.int16).reshape(-1, max_characters)


NO_SENTENCES = (str, bytes, Mapping, Set)
"""Collections whose members are no words, or have no order."""


def are_words(value: object) -> bool:
    """
    Whether a value is an ordered collection of words: a list or a tuple, but also a NumPy array or
    a pandas series.
    """
    if not isinstance(value, Collection) or isinstance(value, NO_SENTENCES):
        return False
    # A table iterates over column names; an array without an axis can't be iterated at all.
    if getattr(value, "ndim", 1) != 1:
        return False
    return all(isinstance(word, str) for word in value)


def check_sentences(sentences: Iterable[Sequence[str]], first: int = 0) -> None:
    """
    Raises `ValueError` if a sentence is not a sequence of words. A plain text is the likely
    mistake: its letters would pass for words. `first` is the number of the first sentence, for the
    error.
    """
    for number, sentence in enumerate(sentences, first):
        if not are_words(sentence):
            raise ValueError(
                f"expected sentence {number} to be a sequence of words, but got {sentence!r}"
            )


def batch_to_ids(
    batch: Iterable[Sequence[str]], max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN
) -> torch.Tensor:
    """
    Spells the words of sentences as ids of characters.

    # Parameters

    batch : `Iterable[Sequence[str]]`
        The words of each sentence.
    max_characters_per_token : `int`, optional (default = `50`, the released models' value)
        Ids of a word, marks and padding included.

    # Returns

    `torch.Tensor`
        Shape `(batch, tokens, characters)`, 0 where a sentence has ended.

    # Raises

    ValueError
        If a sentence is not a sequence of words.
    ConfigurationError
        If a word has no room for a sentence mark between two word marks, or more than 4,096 ids.
    """
    sentences = list(batch)
    check_sentences(sentences)
    check_max_characters(max_characters_per_token)
    lengths = [len(sentence) for sentence in sentences]
    shape = (len(lengths), max(lengths, default=0), max_characters_per_token)
    ids = numpy.zeros(shape, numpy.int64)
    spelled = spelled_words(chain.from_iterable(sentences), max_characters_per_token)
    start = 0
    for row, length in zip(ids, lengths):
        row[:length] = spelled[start : start + length]
        start += length
    return torch.from_numpy(ids)
