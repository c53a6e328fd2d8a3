"""How often words stand beside each other."""

from typing import List

import numpy
from allennlp.common.tqdm import Tqdm
from scipy.sparse import coo_matrix, csr_matrix

from elmo_scratch.static_vectors.vector_text import VectorText


def count_co_occurrences(text: VectorText, window: int) -> csr_matrix:
    """
    Memory holds a block of the text and some 16 bytes for each entry of the result.

    # Parameters

    text : `VectorText`
        The text.
    window : `int`
        Two words of a sentence stand beside each other if they are at most so many places apart,
        words without a vector not counted.

    # Returns

    `csr_matrix`
        Shape `(words, words)`, of int32, symmetric.
    """
    sums: List[csr_matrix] = [_matrix_of(numpy.zeros((2, 0), numpy.int32), len(text.words))]
    with Tqdm.tqdm(
        total=text.num_tokens, unit=" tokens", unit_scale=True, desc="co-occurrences"
    ) as progress:
        for tokens, sentences in text.blocks():
            for apart in range(1, min(window, len(tokens) - 1) + 1):
                is_one_sentence = sentences[:-apart] == sentences[apart:]
                pairs = numpy.stack([tokens[:-apart], tokens[apart:]])[:, is_one_sentence]
                _add(sums, _matrix_of(pairs, len(text.words)))
            progress.update(len(tokens))
    while len(sums) > 1:
        _join_last(sums)
    # So far each pair counts once, the first word in the row. They see each other alike.
    (ahead,) = sums
    return csr_matrix(ahead + ahead.T)


def _matrix_of(pairs: numpy.ndarray, num_words: int) -> csr_matrix:
    """How often each pair comes, of shape `(2, pairs)`."""
    ones = numpy.ones(pairs.shape[1], dtype=numpy.int32)
    return coo_matrix((ones, (pairs[0], pairs[1])), shape=(num_words, num_words)).tocsr()


def _add(sums: List[csr_matrix], counts: csr_matrix) -> None:
    """
    Adds counts to a sum that is kept in parts, each at least twice as large as the next: a large
    part is not gone through again for every small one.
    """
    sums.append(counts)
    while len(sums) > 1 and sums[-2].nnz < 2 * sums[-1].nnz:
        _join_last(sums)


def _join_last(sums: List[csr_matrix]) -> None:
    """Makes one of the last two parts."""
    last = sums.pop()
    sums[-1] = sums[-1] + last
