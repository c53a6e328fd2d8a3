"""The tokens whose vectors are most alike to one token's."""

from contextlib import ExitStack
from os import PathLike
from typing import Callable, List, NamedTuple, Sequence, Union

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
