from inspect import signature

import numpy
import pytest
from scipy.sparse import csr_matrix, random
from scipy.sparse.linalg import eigsh
from threadpoolctl import threadpool_limits

from elmo_scratch.static_vectors import largest_singular

MATRIX = csr_matrix(random(300, 300, density=0.1, random_state=0, dtype=numpy.float32))


@pytest.mark.parametrize("number", [1, 50, 149, 150, 300])
def test_every_dimension_is_that_of_the_exact_decomposition(number: int) -> None:
    left, values = largest_singular(MATRIX, number, seed=3)
    exact, exact_values, _ = numpy.linalg.svd(MATRIX.toarray().astype(numpy.float64))
    cosines = numpy.abs((left * exact[:, :number]).sum(axis=0))
    numpy.testing.assert_allclose(cosines, 1, atol=1e-6)
    numpy.testing.assert_allclose(values, exact_values[:number], rtol=1e-6)


def test_dimensions_that_a_matrix_lacks_are_empty() -> None:
    matrix = csr_matrix(numpy.ones((40, 40), numpy.float32))
    left, values = largest_singular(matrix, 5, seed=0)
    assert numpy.isfinite(left).all()
    numpy.testing.assert_allclose(values, [40, 0, 0, 0, 0], atol=1e-5)


@pytest.mark.parametrize("number", [150, 600])
def test_the_number_of_threads_does_not_matter(number: int) -> None:
    matrix = csr_matrix(random(900, 900, density=0.1, random_state=0, dtype=numpy.float32))
    results = []
    for num_threads in (1, 2):
        with threadpool_limits(num_threads):
            left, values = largest_singular(matrix, number, 0)
        results.append(left.tobytes() + values.tobytes())
    assert results[0] == results[1]


def of_few_dimensions() -> csr_matrix:
    matrix = numpy.zeros((300, 300), numpy.float32)
    matrix[:5, :5] = numpy.random.default_rng(0).random((5, 5))
    return csr_matrix(matrix)


def test_a_matrix_of_few_dimensions_has_these_and_no_others() -> None:
    _, values = largest_singular(of_few_dimensions(), 20, seed=3)
    exact = numpy.linalg.svd(of_few_dimensions()[:5, :5].toarray(), compute_uv=False)
    numpy.testing.assert_allclose(values[:5], exact, rtol=1e-5)
    numpy.testing.assert_allclose(values[5:], 0, atol=1e-5)


@pytest.mark.skipif(
    "rng" not in signature(eigsh).parameters, reason="this SciPy has no seed for what ARPACK draws"
)
def test_a_matrix_of_few_dimensions_has_the_same_result_each_time() -> None:
    (one, _), (other, _) = (largest_singular(of_few_dimensions(), 20, seed=3) for _ in "12")
    assert one.tobytes() == other.tobytes()
