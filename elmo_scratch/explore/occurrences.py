"""The occurrences of a word, and a plane on which they lie as far apart as their vectors."""

from typing import Dict, List, NamedTuple, Sequence, TypeVar

import numpy

from elmo_scratch.explore.tokens import ExportedTokens

Item = TypeVar("Item")


def occurrences(tokens: ExportedTokens) -> Dict[str, List[int]]:
    """Returns the rows of each word, whatever its case, under its casefolded form."""
    rows: Dict[str, List[int]] = {}
    for row, word in enumerate(tokens.words()):
        rows.setdefault(word.casefold(), []).append(row)
    return rows


def spread(items: Sequence[Item], at_most: int) -> List[Item]:
    """Returns the items, or `at_most` of them at even distances, first and last included."""
    if len(items) <= at_most:
        return list(items)
    places = numpy.linspace(0, len(items) - 1, at_most).round().astype(int)
    return [items[place] for place in places]


NO_VARIANCE = 1e-6
"""A component of unit vectors with less variance is a matter of float32's rounding."""


class Plane(NamedTuple):
    """
    Points on a plane, shape `(n, 2)`, and the share of the variance of all dimensions that the
    plane shows, from 0 to 1.
    """

    points: numpy.ndarray
    share: float


def plane_of(products: numpy.ndarray) -> Plane:
    """
    Returns the first two principal components of vectors of length 1 or more, given their products
    with each other, shape `(n, n)` with `n` at least 2. An axis points to its farthest vector.
    """
    centre = numpy.eye(len(products)) - 1 / len(products)
    variances, axes = numpy.linalg.eigh(centre @ products @ centre)  # in ascending order
    variances[variances < NO_VARIANCE] = 0
    points = axes[:, :-3:-1] * numpy.sqrt(variances[:-3:-1])
    longest = numpy.abs(points).argmax(axis=0)
    points *= numpy.where(numpy.take_along_axis(points, longest[None], axis=0) < 0, -1, 1)
    total = float(variances.sum())
    return Plane(points, float(variances[-2:].sum()) / total if total > 0 else 1.0)
