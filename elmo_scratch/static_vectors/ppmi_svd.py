"""Vectors by counting: positive mutual information of words, reduced by a truncated SVD."""

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

from elmo_scratch.static_vectors.method import VectorMethod, VectorText, check_option


def count_co_occurrences(text: VectorText, window: int) -> csr_matrix:
    """
    Counts how often two words stand at most `window` tokens apart in a sentence, words without a
    vector left out. Returns int32 of shape `(words, words)`, symmetric. Memory holds a block of the
    text and some 16 bytes for each entry of the result.
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
    # So far each pair counts once, with its first word as the row; the sum makes it symmetric.
    (ahead,) = sums
    return csr_matrix(ahead + ahead.T)


def _matrix_of(pairs: numpy.ndarray, num_words: int) -> csr_matrix:
    """Counts how often each pair comes; `pairs` has shape `(2, pairs)`."""
    ones = numpy.ones(pairs.shape[1], dtype=numpy.int32)
    return coo_matrix((ones, (pairs[0], pairs[1])), shape=(num_words, num_words)).tocsr()


def _add(sums: List[csr_matrix], counts: csr_matrix) -> None:
    """
    Adds counts to a sum that is kept in parts, each at least twice as large as the next, so that a
    large part is not read again for every small one.
    """
    sums.append(counts)
    while len(sums) > 1 and sums[-2].nnz < 2 * sums[-1].nnz:
        _join_last(sums)


def _join_last(sums: List[csr_matrix]) -> None:
    """Merges the last two parts."""
    last = sums.pop()
    sums[-1] = sums[-1] + last


def largest_singular(
    matrix: csr_matrix, number: int, seed: int
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """
    Returns the left singular vectors with the largest values, shape `(size, number)`, and these
    values in falling order, shape `(number,)`, of a square matrix. The result depends on the seed,
    but not on the number of processor threads. With SciPy before 1.16 (the last one for Python 3.10
    is 1.15) the last bits also depend on what this process has decomposed before, if the rank of
    the matrix is below `number`.
    """
    size = matrix.shape[0]
    # Products of dense matrices are summed in an order that depends on the number of threads.
    with threadpool_limits(1):
        if 2 * number >= size:
            # There is little to leave out, and ARPACK can't find all.
            left, values, _ = numpy.linalg.svd(matrix.toarray().astype(numpy.float64))
            return left[:, :number], values[:number]
        # ARPACK rather than scikit-learn's randomized_svd, whose last dimensions are noise: on AG
        # News (12,407 words, 256 dimensions, one thread) 127 dimensions had a cosine below 0.9
        # with the exact ones. ARPACK took 12 seconds, randomized_svd 2.4; with 15 iterations and
        # 128 more dimensions it took 9.6, and the worst cosine was still 0.91.
        # SciPy's `svds` does the same as this code, but has no seed for the numbers that ARPACK
        # draws if the matrix has a lower rank than the number of dimensions; `eigsh` has one from
        # SciPy 1.16 on.
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
    Returns `max(0, log(P(word, context) / (P(word) P(context))) - log(shift))` as float32, shape
    `(words, words)` like the counts. `shift` corresponds to word2vec's number of negative samples.
    The counts of contexts, in columns, are raised to the power `smoothing`, so that rare contexts
    don't get too much weight. Source: Levy et al. 2015 (see `PpmiSvd`), sections 3.1 to 3.3.
    """
    totals = numpy.asarray(counts.sum(axis=1), dtype=numpy.float64).ravel()  # (words,)
    contexts = totals**smoothing
    with numpy.errstate(divide="ignore", invalid="ignore"):
        # A word that always stands alone gives NaN or infinity here, but has no entry to read it.
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
        Two words count as neighbours up to so many tokens apart; all neighbours count alike.
    shift : `float`, optional (default = `1.0`)
        The logarithm of this is subtracted from the mutual information.
    smoothing : `float`, optional (default = `0.75`)
        The power that the counts of contexts are raised to.
    exponent : `float`, optional (default = `0.5`)
        The power that the singular values are raised to: 1 keeps them, 0 drops them.
    seed : `int`, optional (default = `0`)
        The seed of the random numbers that the decomposition begins with.

    # Raises

    ConfigurationError
        If a setting lies outside its range.

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
        """Reads the text once; raises if it has fewer words than `dim`, or no positive entry."""
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
