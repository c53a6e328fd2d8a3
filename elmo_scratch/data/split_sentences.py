"""Sentences that are split into words already, as Python programs pass them."""

from collections.abc import Collection, Mapping, Set
from typing import Iterable, Sequence

NO_SENTENCES = (str, bytes, Mapping, Set)
"""Collections whose members are no words, or have no order."""


def are_words(value: object) -> bool:
    """
    Whether a value is a collection of words in an order: a list or a tuple, but also an array of
    NumPy or a series of pandas.
    """
    if not isinstance(value, Collection) or isinstance(value, NO_SENTENCES):
        return False
    # A table goes through the names of its columns, and an array without an axis through nothing.
    if getattr(value, "ndim", 1) != 1:
        return False
    return all(isinstance(word, str) for word in value)


def check_sentences(sentences: Iterable[Sequence[str]], first: int = 0) -> None:
    """
    # Parameters

    sentences : `Iterable[Sequence[str]]`
        The words of each sentence.
    first : `int`, optional (default = `0`)
        The number of the first one, for the error.

    # Raises

    ValueError
        If a sentence is not a sequence of words. A text in the place of one, above all: its letters
        would pass for words.
    """
    for number, sentence in enumerate(sentences, first):
        if not are_words(sentence):
            raise ValueError(
                f"expected sentence {number} to be a sequence of words, but got {sentence!r}"
            )
