"""The cases of a test over a grid that stand for all of them."""

from itertools import combinations
from typing import Dict, Hashable, List, Sequence, Set, Tuple

Case = Dict[str, Hashable]

FEW = 6
"""A grid of no more cases stands for itself."""


def standing_for_all(cases: Sequence[Case]) -> List[int]:
    """
    # Parameters

    cases : `Sequence[Case]`
        The values that each case of a test gives to the test's parameters.

    # Returns

    `List[int]`
        The places of at least `FEW` cases, or of all where there are no more. Every value of every
        parameter is in one of them, and each of them has as many pairs of values as possible that
        no case before it has.
    """
    waiting = {place: _pairs(case) for place, case in enumerate(cases)}
    values = {value for case in cases for value in case.items()}
    seen: Set[Tuple[object, ...]] = set()
    chosen: List[int] = []
    while waiting and (len(chosen) < FEW or values):
        # Of equally good cases the first.
        place = max(
            waiting,
            key=lambda one: (len(waiting[one] - seen), len(values & set(cases[one].items()))),
        )
        seen |= waiting.pop(place)
        values -= set(cases[place].items())
        chosen.append(place)
    return sorted(chosen)


def _pairs(case: Case) -> Set[Tuple[object, ...]]:
    return set(combinations(sorted(case.items(), key=lambda item: item[0]), 2))
