"""Sentences that are split into words already, as Python programs pass them."""

from typing import Iterable, Sequence


def check_sentences(sentences: Iterable[Sequence[str]]) -> None:
    """
    # Parameters

    sentences : `Iterable[Sequence[str]]`
        The words of each sentence.

    # Raises

    ValueError
        If a sentence is not a sequence of words. A text in the place of one, above all: its letters
        would pass for words.
    """
    for number, sentence in enumerate(sentences):
        is_sequence = isinstance(sentence, Sequence) and not isinstance(sentence, (str, bytes))
        if not is_sequence or not all(isinstance(word, str) for word in sentence):
            raise ValueError(
                f"expected sentence {number} to be a sequence of words, but got {sentence!r}"
            )
