"""Sentences that are laid side by side."""

from typing import Iterable, Iterator, List, Sequence

from allennlp.common.util import lazy_groups_of

from elmo_scratch.data.spelling import check_sentences

MAX_POSITIONS_LAID = 2**16
"""
How many positions a batch of layers may have, with what fills its shorter sentences up; unless one
sentence has more. With the released original model they take 800 MB.
"""

WARM_UP_AT_ONCE = 64
"""Sentences whose words are encoded together while a text warms the biLM up."""


def row_groups(lengths: Sequence[int]) -> Iterator[slice]:
    """
    Cuts a batch where one sentence is so long that all others, filled up to its length, would take
    memory out of proportion.

    # Parameters

    lengths : `Sequence[int]`
        How many tokens each sentence has.

    # Returns

    `Iterator[slice]`
        The sentences of each group, in their order: at least one, and no more than
        `MAX_POSITIONS_LAID` allows.
    """
    first = longest = 0
    for row, length in enumerate(lengths):
        longest = max(longest, length)
        # Each has its two marks.
        if row > first and (row + 1 - first) * (longest + 2) > MAX_POSITIONS_LAID:
            yield slice(first, row)
            first, longest = row, length
    if first < len(lengths):
        yield slice(first, len(lengths))


def warm_up_batches(sentences: Iterable[Sequence[str]]) -> Iterator[List[List[str]]]:
    """
    # Parameters

    sentences : `Iterable[Sequence[str]]`
        The words of each sentence of a text to warm up with, in its order.

    # Returns

    `Iterator[List[List[str]]]`
        The same, `WARM_UP_AT_ONCE` at a time, or fewer where one is very long.

    # Raises

    ValueError
        As `check_sentences` does.
    """
    for number, group in enumerate(lazy_groups_of(sentences, WARM_UP_AT_ONCE)):
        check_sentences(group, number * WARM_UP_AT_ONCE)
        words = [list(sentence) for sentence in group]
        for rows in row_groups(list(map(len, words))):
            yield words[rows]
