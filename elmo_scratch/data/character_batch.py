"""Sentences of words as one tensor of character ids."""

from itertools import chain
from typing import Iterable, Sequence, Type

import numpy
import torch

from elmo_scratch.alphabet import MAX_CHARACTERS_PER_TOKEN
from elmo_scratch.data.spelled_words import check_max_characters, spelled_words
from elmo_scratch.data.split_sentences import check_sentences


def batch_to_ids(
    batch: Iterable[Sequence[str]], max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN
) -> torch.Tensor:
    """
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
    return torch.from_numpy(padded_ids(batch, max_characters_per_token, numpy.int64))


def padded_ids(
    batch: Iterable[Sequence[str]], max_characters: int, dtype: Type[numpy.signedinteger]
) -> numpy.ndarray:
    """
    # Parameters

    batch, max_characters
        As in `batch_to_ids`.
    dtype : `Type[numpy.signedinteger]`
        Of the ids; int16 has room for them.

    # Returns

    `numpy.ndarray`
        Shape `(batch, tokens, characters)`, 0 where a sentence has ended.

    # Raises

    ValueError, ConfigurationError
        As `batch_to_ids` does.
    """
    sentences = list(batch)
    check_sentences(sentences)
    check_max_characters(max_characters)
    lengths = [len(sentence) for sentence in sentences]
    ids = numpy.zeros((len(lengths), max(lengths, default=0), max_characters), dtype)
    spelled = spelled_words(chain.from_iterable(sentences), max_characters)
    start = 0
    for row, length in zip(ids, lengths):
        row[:length] = spelled[start : start + length]
        start += length
    return ids
