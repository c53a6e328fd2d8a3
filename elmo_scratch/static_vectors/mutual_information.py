"""What two words have to do with each other, beyond how frequent both are."""

import numpy
from scipy.sparse import csr_matrix


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
