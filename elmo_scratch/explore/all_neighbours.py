"""The nearest neighbours of all tokens at once, by blocked matrix products."""

from typing import Callable, Tuple

import numpy

from elmo_scratch.explore.tokens import cosines

TILE = 2048
"""Rows and columns of a block of the matrix of all cosines: 16 MiB of float32."""

SPARE = 8
"""
How many more neighbours than asked for the products choose, whose float32 may swap two that differ
by less than a rounding error. The final order is by `cosines`, as in `nearest`.
"""

NUMBERS_AT_ONCE = 2**21
"""About how many numbers are compared at once in the final order."""


def num_tiles(num_rows: int) -> int:
    """How many blocks `neighbours_of_all` multiplies."""
    per_side = -(-num_rows // TILE)
    return per_side * (per_side + 1) // 2


def neighbours_of_all(
    units: numpy.ndarray, k: int, done: Callable[[int], object]
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """
    Finds the `k` rows that are nearest to each row, itself left out.

    # Parameters

    units : `numpy.ndarray`
        Unit vectors, float32 of shape `(rows, width)`.
    k : `int`
        At least 1; with fewer other rows all of them are found.
    done : `Callable[[int], object]`
        Is told 1 after each of `num_tiles` blocks.

    # Returns

    `Tuple[numpy.ndarray, numpy.ndarray]`
        The neighbours' rows, nearest first, and their cosines in float64; both of shape
        `(rows, k)`. Of equal cosines the earlier row comes first. Where more than `SPARE` rows
        differ by rounding errors only, which of them are found may depend on the processor.
    """
    k = min(k, len(units) - 1)
    best = _Best(len(units), min(k + SPARE, len(units) - 1))
    starts = range(0, len(units), TILE)
    for start in starts:
        for other in starts[start // TILE :]:
            scores = units[start : start + TILE] @ units[other : other + TILE].T
            if start == other:
                numpy.fill_diagonal(scores, -numpy.inf)
            best.update(start, other, scores)
            # The matrix is symmetric: each block serves its columns too. So every row meets all
            # others in the order of the file.
            if start != other:
                best.update(other, start, scores.T)
            done(1)
    return _ordered(units, best.columns, k)


class _Best:
    """The `count` columns of the highest scores of each row, among those seen so far."""

    def __init__(self, num_rows: int, count: int) -> None:
        self._scores = numpy.full((num_rows, count), -numpy.inf, "float32")
        self.columns = numpy.zeros((num_rows, count), "int64")
        self._worst = numpy.full((num_rows, 1), -numpy.inf, "float32")

    def update(self, first_row: int, first_column: int, scores: numpy.ndarray) -> None:
        """Takes the scores of some rows and columns, shape `(rows, columns)`."""
        rows = slice(first_row, first_row + len(scores))
        count = self.columns.shape[1]
        is_better = scores > self._worst[rows]
        if first_column == 0 and scores.shape[1] > count:
            # Nothing is known yet that the scores could be compared with.
            is_better &= scores >= numpy.partition(scores, -count, axis=1)[:, -count, None]
        at_row, at_column = _nonzero(is_better)
        if not len(at_row):
            return
        # Each row's candidates side by side, behind what it has.
        num_new = numpy.bincount(at_row, minlength=len(scores))
        offset = numpy.arange(len(at_row)) - numpy.repeat(numpy.cumsum(num_new) - num_new, num_new)
        shape = (len(scores), count + int(num_new.max()))
        together = numpy.full(shape, -numpy.inf, "float32")
        columns = numpy.zeros(shape, "int64")
        together[:, :count], columns[:, :count] = self._scores[rows], self.columns[rows]
        together[at_row, count + offset] = scores[at_row, at_column]
        columns[at_row, count + offset] = first_column + at_column
        kept = numpy.argpartition(-together, count - 1, axis=1)[:, :count]
        self._scores[rows] = numpy.take_along_axis(together, kept, axis=1)
        self.columns[rows] = numpy.take_along_axis(columns, kept, axis=1)
        self._worst[rows] = self._scores[rows].min(axis=1, keepdims=True)


def _nonzero(mask: numpy.ndarray) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """
    `numpy.nonzero` of a matrix or of a transposed one, in the order of rows: where little is true,
    it takes a tenth of the time.
    """
    found = numpy.flatnonzero(mask.ravel(order="K"))  # in the order of the memory
    if mask.flags.c_contiguous:
        return numpy.divmod(found, mask.shape[1])
    at_column, at_row = numpy.divmod(found, mask.shape[0])
    order = numpy.argsort(at_row, kind="stable")
    return at_row[order], at_column[order]


def _ordered(
    units: numpy.ndarray, columns: numpy.ndarray, k: int
) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """The `k` nearest of each row's candidates, in order; `columns` has shape `(rows, count)`."""
    columns = numpy.sort(columns, axis=1)  # so that equal cosines stay in the order of the file
    exact = numpy.empty(columns.shape)
    step = max(1, NUMBERS_AT_ONCE // max(1, columns.shape[1] * units.shape[1]))
    for start in range(0, len(units), step):
        rows = slice(start, start + step)
        exact[rows] = cosines(units[columns[rows]], units[rows, None])
    order = numpy.argsort(-exact, axis=1, kind="stable")[:, :k]
    return numpy.take_along_axis(columns, order, axis=1), numpy.take_along_axis(exact, order, 1)
