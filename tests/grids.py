"""The cases of a test over a grid that stand for all of them."""

from itertools import combinations
from typing import Dict, Hashable, NamedTuple, Sequence, Set, Tuple

Case = Dict[str, Hashable]

FEW = 6
"""A grid of no more cases stands for itself."""


class Standing(NamedTuple):
    """
    # Parameters

    for_values : `Set[int]`
        The places of at least `FEW` cases, or of all where there are no more. Every value of every
        parameter is in one of them.
    for_pairs : `Set[int]`
        Those, and as many more as it takes to have every two values of two parameters that come
        together in a case.
    """

    for_values: Set[int]
    for_pairs: Set[int]


def standing_for_all(cases: Sequence[Case]) -> Standing:
    """
    # Parameters

    cases : `Sequence[Case]`
        The values that each case of a test gives to the test's parameters.

    # Returns

    `Standing`
        The cases that stand for all of them. Each has as many pairs of values as possible that no
        case before it has.
    """
    waiting = {place: _pairs(case) for place, case in enumerate(cases)}
    values = {value for case in cases for value in case.items()}
    pairs: Set[Tuple[object, ...]] = set().union(*waiting.values())
    for_values: Set[int] = set()
    for_pairs: Set[int] = set()
    while waiting and (len(for_pairs) < FEW or values or pairs):
        # Of equally good cases the first.
        place = max(
            waiting,
            key=lambda one: (len(waiting[one] & pairs), len(values & set(cases[one].items()))),
        )
        if len(for_pairs) < FEW or values:
            for_values.add(place)
        for_pairs.add(place)
        pairs -= waiting.pop(place)
        values -= set(cases[place].items())
    return Standing(for_values, for_pairs)


def _pairs(case: Case) -> Set[Tuple[object, ...]]:
    return set(combinations(sorted(case.items(), key=lambda item: item[0]), 2))
