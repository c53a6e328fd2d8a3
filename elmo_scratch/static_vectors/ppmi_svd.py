"""Counted vectors: positive mutual information of words, in the dimensions that matter most."""

import logging
from dataclasses import dataclass

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.static_vectors.co_occurrences import count_co_occurrences
from elmo_scratch.static_vectors.largest_singular import largest_singular
from elmo_scratch.static_vectors.method import VectorMethod
from elmo_scratch.static_vectors.mutual_information import positive_mutual_information
from elmo_scratch.static_vectors.option_check import check_option
from elmo_scratch.static_vectors.vector_text import VectorText

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
