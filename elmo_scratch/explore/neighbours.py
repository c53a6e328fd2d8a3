"""
The nearest neighbours of one token, and of all tokens at once by blocked matrix products; the
occurrences of a word, and a plane on which they lie as far apart as their vectors.
"""

from contextlib import ExitStack
from os import PathLike
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple, TypeVar, Union

import numpy

from elmo_scratch.explore.tokens import ExportedTokens, cosines
from elmo_scratch.interop import LayerFile


class Neighbour(NamedTuple):
    """A token, as in `Token`, and the cosine of its vector and the vector that was asked about."""

    sentence: int
    position: int
    word: str
    cosine: float


class Query(NamedTuple):
    """
    A question: the tokens nearest to that of a row, in a layer. With `each_word_once` each word
    counts once, by its nearest token, and the word of the row itself doesn't count.
    """

    row: int
    layer: int
    each_word_once: bool


def nearest(
    layer_file: Union[str, PathLike, LayerFile],
    sentence: Union[int, str],
    position: int,
    layer: int,
    k: int = 10,
    *,
    each_word_once: bool = False,
) -> List[Neighbour]:
    """
    Finds the nearest neighbours of a token by the cosine of vectors, among all tokens of a file
    that `allennlp elmo` wrote. They are exact: each token is looked at. The file is read in blocks;
    of its tokens memory holds the words and one number each.

    # Parameters

    layer_file : `Union[str, PathLike, LayerFile]`
        The file, by its path or opened.
    sentence : `Union[int, str]`
        The number of the token's line, from 0, or the sentence itself.
    position : `int`
        The token's place in its sentence, from 0.
    layer : `int`
        The number of the layer: 0 is the static token layer, the LSTMs' follow. A file of one layer
        (`--top`, `--average`) has that as its layer 0.
    k : `int`, optional (default = `10`)
        How many neighbours.
    each_word_once : `bool`, optional (default = `False`)
        Each word counts once, by its nearest token, and the token's own word not at all. Useful in
        the static layer, where all tokens of a word have one vector.

    # Returns

    `List[Neighbour]`
        `k` tokens, or as many as there are, the nearest first, and equal ones in the order of the
        file. The token itself is none of them.

    # Raises

    ConfigurationError
        If the file is no file of layers, is damaged, holds pooled vectors or not its sentences.
    IndexError
        If there is no sentence of that number, no such position or no such layer.
    KeyError
        If there is no such sentence.
    ValueError
        If `k` is below 1.
    """
    if k < 1:
        raise ValueError(f"expected `k` of 1 or more, but got {k}")
    with ExitStack() as opened:
        if not isinstance(layer_file, LayerFile):
            layer_file = opened.enter_context(LayerFile(layer_file))
        tokens = ExportedTokens(layer_file)
        tokens.check_layer(layer)
        query = Query(tokens.row(sentence, position), layer, each_word_once)
        return answers(tokens, [query], k)[0]


def answers(
    tokens: ExportedTokens,
    queries: Sequence[Query],
    k: int,
    done: Callable[[int], object] = lambda rows: None,
) -> List[List[Neighbour]]:
    """
    Returns the `k` nearest neighbours for each query, all by one pass over the file. `done` is told
    how many more rows have been read. Raises `ConfigurationError` if the file is damaged.
    """
    layers = sorted({query.layer for query in queries})
    rows = sorted({query.row for query in queries})
    asked = tokens.unit_vectors(rows, layers)
    places = [(layers.index(query.layer), rows.index(query.row)) for query in queries]
    found = numpy.empty((len(queries), len(tokens)))
    for first, block in tokens.blocks(layers):
        end = first + block.shape[1]
        for number, (layer, row) in enumerate(places):
            found[number, first:end] = cosines(block[layer], asked[layer, row])
        done(end - first)
    forms = tokens.forms() if any(query.each_word_once for query in queries) else numpy.empty(0)
    return [_answer(tokens, query, of_rows, k, forms) for query, of_rows in zip(queries, found)]


def _answer(
    tokens: ExportedTokens, query: Query, of_rows: numpy.ndarray, k: int, forms: numpy.ndarray
) -> List[Neighbour]:
    """The answer to a query, given the cosines and the words' numbers of all rows."""
    order = numpy.argsort(-of_rows, kind="stable")  # rows of equal cosines stay in order
    if query.each_word_once:
        order = order[forms[order] != forms[query.row]]
        _, first_of_each = numpy.unique(forms[order], return_index=True)
        order = order[numpy.sort(first_of_each)]
    else:
        order = order[order != query.row]
    return [Neighbour(*tokens.token(int(row)), float(of_rows[row])) for row in order[:k]]


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
