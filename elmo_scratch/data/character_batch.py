"""Sentences of words as one tensor of character ids."""

from itertools import chain
from typing import Iterable, Sequence

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
