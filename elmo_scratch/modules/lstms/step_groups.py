"""Steps of reading, several at a time."""

from typing import Iterator, List, Sequence


def step_groups(widths: Sequence[int], at_once: int) -> Iterator[List[int]]:
    """
    # Parameters

    widths : `Sequence[int]`
        How many sentences are read at each step.
    at_once : `int`
        How many positions a group may have.

    # Returns

    `Iterator[List[int]]`
        The widths of consecutive steps, in groups of at most `at_once` positions, or of one step.
    """
    group: List[int] = []
    positions = 0
    for width in widths:
        if group and positions + width > at_once:
            yield group
            group, positions = [], 0
        group.append(width)
        positions += width
    if group:
        yield group
