"""Folds of AG News: each text is measured once, by what has learned nothing of it."""

from typing import List, NamedTuple, Sequence

import numpy
import scipy.sparse
from allennlp.common.checks import ConfigurationError
from scipy.sparse.csgraph import connected_components
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedGroupKFold

from elmo_scratch.data.readers import AgNewsRow

CHOOSING = 10
"""One text in so many of those to learn from chooses the epoch."""

SIMILAR = 0.5
"""
The cosine of TF-IDF vectors above which two texts tell the same news, which a third of the
study's texts do. Where such twins lie in different folds, a classifier seems better than it is:
README.md beside this file has figures.
"""

ROWS_AT_ONCE = 1000


class Fold(NamedTuple):
    """
    # Parameters

    train : `List[AgNewsRow]`
        What is learned from.
    choosing : `List[AgNewsRow]`
        What chooses the epoch, a tenth of the texts of the other folds.
    measured : `List[AgNewsRow]`
        What neither has seen.
    """

    train: List[AgNewsRow]
    choosing: List[AgNewsRow]
    measured: List[AgNewsRow]


def same_news(rows: Sequence[AgNewsRow], similar: float = SIMILAR) -> numpy.ndarray:
    """
    Groups texts that tell the same news: agencies send a piece again and again, with a few words
    changed. Two texts are of a group if they are similar, or similar to others of it.

    # Parameters

    rows : `Sequence[AgNewsRow]`
        Pieces of news, at least one of which has a word.
    similar : `float`, optional (default = `SIMILAR`)
        The cosine of their TF-IDF vectors above which two are similar; at 1 each has a group of
        its own.

    # Returns

    `numpy.ndarray`
        The number of each text's group. Shape `(rows,)`.
    """
    texts = [f"{row.title} {row.description}" for row in rows]
    vectors = TfidfVectorizer(sublinear_tf=True, dtype=numpy.float32).fit_transform(texts)
    blocks = [
        vectors[first : first + ROWS_AT_ONCE] @ vectors.T > similar
        for first in range(0, len(rows), ROWS_AT_ONCE)
    ]
    _, groups = connected_components(scipy.sparse.vstack(blocks), directed=False)
    return groups


def drawn_folds(rows: Sequence[AgNewsRow], groups: numpy.ndarray, num_folds: int) -> List[Fold]:
    """
    # Parameters

    rows : `Sequence[AgNewsRow]`
        All texts there are.
    groups : `numpy.ndarray`
        The number of each text's group, as of `same_news`; a group stays together. Shape `(rows,)`.
    num_folds : `int`
        How many folds are drawn, at least two.

    # Returns

    `List[Fold]`
        The same ones for the same rows. Each has about as many texts of each class as all rows
        have, in their order.

    # Raises

    ConfigurationError
        If a class has too few different texts for so many folds, a tenth of which chooses.
    """
    labels = numpy.array([row.label for row in rows])
    fewest = min(len(set(groups[labels == label])) for label in set(labels))
    # The other folds must have ten texts of each class, so that each tenth has one.
    if fewest * (num_folds - 1) < CHOOSING * num_folds or fewest < num_folds:
        raise ConfigurationError(
            f"expected more texts of each class for {num_folds} folds, but one class has {fewest}"
        )
    splitter = StratifiedGroupKFold(num_folds, shuffle=True, random_state=0)
    folds = []
    for others, measured in splitter.split(groups, labels, groups):
        parting = StratifiedGroupKFold(CHOOSING, shuffle=True, random_state=0)
        train, choosing = next(parting.split(others, labels[others], groups[others]))
        places = sorted(others[train]), sorted(others[choosing]), sorted(measured)
        folds.append(Fold(*([rows[place] for place in part] for part in places)))
    return folds
