import math

import numpy
import pytest
from scipy.sparse import csr_matrix

from elmo_scratch.static_vectors import positive_mutual_information

# Three words: the first beside the second 4 times, beside the third once, and so on.
COUNTS = csr_matrix(numpy.array([[2, 4, 1], [4, 0, 0], [1, 0, 6]], dtype=numpy.int32))
TOTAL, OF_WORD = 18, [7, 4, 7]


def by_hand(row: int, column: int, smoothing: float, shift: float) -> float:
    """Equation by equation, one pair at a time."""
    count = COUNTS[row, column]
    if count == 0:
        return 0.0
    joint = count / TOTAL
    word = OF_WORD[row] / TOTAL
    context = OF_WORD[column] ** smoothing / sum(of**smoothing for of in OF_WORD)
    return max(0.0, math.log(joint / (word * context)) - math.log(shift))


@pytest.mark.parametrize("smoothing", [1.0, 0.75, 0.0])
@pytest.mark.parametrize("shift", [1.0, 1.5, 5.0])
def test_it_is_what_the_equations_say(smoothing: float, shift: float) -> None:
    information = positive_mutual_information(COUNTS, shift, smoothing).toarray()
    expected = [[by_hand(row, column, smoothing, shift) for column in range(3)] for row in range(3)]
    numpy.testing.assert_allclose(information, expected, atol=1e-6)


def test_a_number_worked_out_on_paper() -> None:
    # P(first, second) = 4/18, P(first) = 7/18, P(second) = 4/18: the logarithm of 18/7.
    information = positive_mutual_information(COUNTS, smoothing=1.0)
    assert information[0, 1] == pytest.approx(math.log(18 / 7))
    assert information.dtype == numpy.float32


def test_what_is_not_positive_takes_no_room() -> None:
    information = positive_mutual_information(COUNTS, smoothing=1.0)
    # Beside itself the first word stands less often than by chance: 2/18 against 49/324.
    assert (information.data > 0).all()
    assert information.nnz == 3
    assert COUNTS.nnz == 6  # which stay as they were


def test_smoothing_lowers_the_information_of_rare_contexts() -> None:
    plain, smoothed = (
        positive_mutual_information(COUNTS, smoothing=power) for power in (1.0, 0.75)
    )
    assert smoothed[0, 1] < plain[0, 1]  # the second word is the rarest


@pytest.mark.filterwarnings("error")
def test_a_word_without_neighbours_has_none() -> None:
    counts = csr_matrix(numpy.array([[0, 3, 0], [3, 0, 0], [0, 0, 0]], dtype=numpy.int32))
    information = positive_mutual_information(counts, smoothing=1.0).toarray()
    log_2 = math.log(2)
    expected = numpy.array([[0, log_2, 0], [log_2, 0, 0], [0, 0, 0]])
    numpy.testing.assert_allclose(information, expected, rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_where_nothing_was_counted_there_is_none() -> None:
    assert positive_mutual_information(csr_matrix((3, 3), dtype=numpy.int32)).nnz == 0
