from typing import List

import pytest

from elmo_scratch.kernels.lstm.run import step_groups


@pytest.mark.parametrize(
    "at_once, expected",
    [
        (1, [[3], [3], [2], [1], [1]]),
        (4, [[3], [3], [2, 1, 1]]),
        (6, [[3, 3], [2, 1, 1]]),
        (9, [[3, 3, 2, 1], [1]]),
        (100, [[3, 3, 2, 1, 1]]),
    ],
)
def test_a_group_has_as_many_positions_as_it_may_or_one_step(
    at_once: int, expected: List[List[int]]
) -> None:
    assert list(step_groups([3, 3, 2, 1, 1], at_once)) == expected


def test_without_a_step_there_is_no_group() -> None:
    assert list(step_groups([], 5)) == []
