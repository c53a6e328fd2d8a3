from typing import Type

import numpy
import pytest

from elmo_scratch.static_vectors import PpmiSvd, VectorMethod, Word2Vec
from tests.static_vectors.tiny_texts import text_of

LINES = ["b a b c", "c a", "b a d c", "b"]


@pytest.mark.parametrize("method", [Word2Vec, PpmiSvd])
def test_every_method_gives_each_word_a_vector(method: Type[VectorMethod]) -> None:
    text = text_of(*LINES)
    vectors = method(dim=3, seed=5).vectors_of(text)  # type: ignore[call-arg]
    assert vectors.dtype == numpy.float32
    assert vectors.shape == (4, 3)
    assert numpy.isfinite(vectors).all()
    assert len(numpy.unique(vectors, axis=0)) == 4
