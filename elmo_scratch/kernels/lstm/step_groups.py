"""Steps of reading, several at a time."""

from typing import Iterator, List, Sequence


def step_groups(batch_sizes: Sequence[int], at_once: int) -> Iterator[List[int]]:
    """The sizes of consecutive steps, in groups of at most `at_once` positions, or of one step."""
    group: List[int] = []
    positions = 0
    for active in batch_sizes:
        if group and positions + active > at_once:
            yield group
            group, positions = [], 0
        group.append(active)
        positions += active
    if group:
        yield group
