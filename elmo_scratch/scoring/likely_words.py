"""The words that may stand in the place of another, by both directions of a language model."""

from typing import Sequence

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.kernels import TopScores, top_scores
from elmo_scratch.modules import OutputSoftmax

CHUNK_SIZE = 2**22
"""Log probabilities of a chunk and a direction: 16 MiB in float32, a few times over."""


def likely_words(
    softmax: OutputSoftmax,
    left_to_right: torch.Tensor,
    right_to_left: torch.Tensor,
    count: int,
    *,
    num_words: int,
    excluded: Sequence[int],
) -> TopScores:
    """
    Finds the most likely words at places between two states.

    The two directions share no state, so they are combined as if what stands before a place and
    what stands after it were independent given the word: the log probabilities of both are added,
    and renormalised over all words that are not excluded. (By Bayes' rule one would also divide by
    how frequent the word is at all, which the model doesn't tell.)

    # Parameters

    softmax : `OutputSoftmax`
        In evaluation mode.
    left_to_right, right_to_left : `torch.Tensor`
        Shape `(places, dim)`: the states before and after each place.
    count : `int`
        How many words are wanted at a place.
    num_words : `int`
        The size of the vocabulary.
    excluded : `Sequence[int]`
        Ids that stand for no word: padding, the marks of sentence boundaries, the unknown word.

    # Returns

    `TopScores`
        Shape `(places, count)`, or fewer columns with fewer words: the log probabilities and the
        ids, most likely first.

    # Raises

    ConfigurationError
        If the softmax has no `log_probabilities`.
    """
    wanted = min(count, num_words - len(excluded))
    rows = max(1, CHUNK_SIZE // num_words)
    values = left_to_right.new_empty(len(left_to_right), wanted)
    indices = torch.empty_like(values, dtype=torch.long)
    try:
        for first in range(0, len(values), rows):
            some = slice(first, first + rows)
            joint = softmax.log_probabilities(left_to_right[some])  # (rows, words)
            joint = joint + softmax.log_probabilities(right_to_left[some])
            joint[:, list(excluded)] = -torch.inf
            top = top_scores(torch.log_softmax(joint, dim=1), wanted)
            values[some], indices[some] = top.values, top.indices
    except NotImplementedError:
        raise ConfigurationError(
            f"the softmax {type(softmax).__name__} lists no likely words: it has no method "
            "`log_probabilities`. Leave --top (`top`) out."
        ) from None
    return TopScores(values, indices)
