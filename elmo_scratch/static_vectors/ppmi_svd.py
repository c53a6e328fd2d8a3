"""Counted vectors: positive mutual information of words, reduced by a truncated SVD."""

import logging
from dataclasses import dataclass
from inspect import signature
from typing import List, Tuple

import numpy
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import threadpool_limits

from elmo_scratch.static_vectors.method import VectorMethod
from elmo_scratch.static_vectors.option_check import check_option
from elmo_scratch.static_vectors.text import VectorText


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


def largest_singular(
    matrix: csr_matrix, number: int, seed: int
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """
    The same arguments give the same result, whatever the number of processor threads.

    # Parameters

    matrix : `csr_matrix`
        Shape `(size, size)`.
    number : `int`
        How many dimensions, at most `size`.
    seed : `int`
        Of the vectors that the search begins with.

    # Returns

    `Tuple[numpy.ndarray, numpy.ndarray]`
        The left singular vectors, shape `(size, number)`, and their values, shape `(number,)`,
        which fall.
    """
    size = matrix.shape[0]
    # With another number of threads, products of dense matrices are summed in another order.
    with threadpool_limits(1):
        if 2 * number >= size:
            # There is little to leave out, and ARPACK can't find all.
            left, values, _ = numpy.linalg.svd(matrix.toarray().astype(numpy.float64))
            return left[:, :number], values[:number]
        # ARPACK rather than scikit-learn's randomized_svd, whose last dimensions are noise: of 256
        # of AG News (12,407 words), 127 had a cosine below 0.9 with the exact ones. On one thread
        # it takes 12 seconds for 2.4; with 15 iterations and 128 more dimensions the other took
        # 9.6, and the worst cosine was still 0.91.
        # This is what scipy's `svds` does, which has no seed for what ARPACK draws where there are
        # fewer dimensions than it is asked for.
        matrix = matrix.astype(numpy.float64)
        turned = matrix.T.tocsr()
        squares = LinearOperator(
            (size, size), matvec=lambda vector: turned @ (matrix @ vector), dtype=numpy.float64
        )
        start = numpy.random.default_rng(seed).standard_normal(size)
        seeded = {"rng": seed} if "rng" in signature(eigsh).parameters else {}
        _, right = eigsh(squares, k=number, v0=start, **seeded)
        right, _ = numpy.linalg.qr(right)
        left, values, _ = numpy.linalg.svd(matrix @ right, full_matrices=False)
    return left, values


def positive_mutual_information(
    counts: csr_matrix, shift: float = 1.0, smoothing: float = 0.75
) -> csr_matrix:
    """
    # Parameters

    counts : `csr_matrix`
        Shape `(words, words)`: how often words stand beside each other.
    shift : `float`, optional (default = `1.0`)
        Its logarithm is subtracted: what `k` negative samples are for word2vec.
    smoothing : `float`, optional (default = `0.75`)
        The counts of the words in columns are raised to this power, so that rare ones don't look
        more telling than they are. 1 leaves them.

    # Returns

    `csr_matrix`
        Shape `(words, words)`, of float32: `max(0, log(P(word, context) / (P(word) P(context))) -
        log(shift))`.

    # Source

    Levy, Goldberg and Dagan 2015, "Improving Distributional Similarity with Lessons Learned from
    Word Embeddings", sections 3.1 to 3.3.
    """
    totals = numpy.asarray(counts.sum(axis=1), dtype=numpy.float64).ravel()  # (words,)
    contexts = totals**smoothing
    with numpy.errstate(divide="ignore", invalid="ignore"):
        # A word that stands alone wherever it occurs has no entries for these to matter.
        log_totals, log_shares = numpy.log(totals), numpy.log(contexts / contexts.sum())
    information = numpy.log(counts.data, dtype=numpy.float64)  # (pairs,)
    information -= numpy.repeat(log_totals, numpy.diff(counts.indptr))
    information -= log_shares[counts.indices]
    information -= numpy.log(shift)
    positive = numpy.maximum(information, 0, out=information).astype(numpy.float32)
    result = csr_matrix((positive, counts.indices, counts.indptr), shape=counts.shape, copy=True)
    result.eliminate_zeros()
    return result


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PpmiSvd(VectorMethod):
    """
    Positive pointwise mutual information and a truncated singular value decomposition.

    # Parameters

    dim : `int`, optional (default = `300`)
        The size of a vector.
    window : `int`, optional (default = `5`)
        How far apart two words may be, at most; all count alike.
    shift : `float`, optional (default = `1.0`)
        Its logarithm is subtracted from the mutual information.
    smoothing : `float`, optional (default = `0.75`)
        The power that the counts of contexts are raised to.
    exponent : `float`, optional (default = `0.5`)
        The power that the singular values are raised to: 1 keeps them, 0 drops them.
    seed : `int`, optional (default = `0`)
        Of the random numbers that the decomposition begins with.

    # Raises

    ConfigurationError
        If a setting makes no sense.

    # Source

    Levy, Goldberg and Dagan 2015, "Improving Distributional Similarity with Lessons Learned from
    Word Embeddings", section 3.
    """

    dim: int = 300
    window: int = 5
    shift: float = 1.0
    smoothing: float = 0.75
    exponent: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_option("dim", self.dim, 1)
        check_option("window", self.window, 1)
        check_option("shift", self.shift, 1)
        check_option("smoothing", self.smoothing, 0, 1)
        check_option("exponent", self.exponent, 0, 1)
        check_option("seed", self.seed, 0, 2**32 - 1)

    def vectors_of(self, text: VectorText) -> numpy.ndarray:
        """Reads the text once."""
        if self.dim > len(text.words):
            raise ConfigurationError(
                f"expected --dim of at most {len(text.words)}, the number of words that get "
                f"vectors, got {self.dim}. Choose a smaller one, or a smaller --min-count."
            )
        counts = count_co_occurrences(text, self.window)
        information = positive_mutual_information(counts, self.shift, self.smoothing)
        if information.nnz == 0:
            raise ConfigurationError(
                "expected words that stand beside each other more often than by chance, but there "
                f"are none within --window {self.window} with --shift {self.shift:g}"
            )
        logger.info("Decomposing a matrix with %d positive entries", information.nnz)
        # (words, dim), (dim,)
        left, values = largest_singular(information, self.dim, self.seed)
        return (left * values**self.exponent).astype(numpy.float32)
