from typing import List

import pytest

from elmo_scratch.embedders.sentence_layers import row_groups


@pytest.mark.parametrize(
    "lengths, groups",
    [
        ([], []),
        ([3], [[3]]),
        ([90, 1, 1, 1], [[90], [1, 1, 1]]),
        ([1, 2, 90, 1], [[1, 2], [90], [1]]),
        ([3, 3, 3], [[3, 3], [3]]),
        ([8, 1], [[8], [1]]),
        ([0, 0, 0, 0, 0, 0, 0], [[0] * 5, [0] * 2]),
    ],
)
def test_a_group_has_no_more_than_ten_positions_or_one_sentence(
    lengths: List[int], groups: List[List[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_scratch.embedders.sentence_layers.laid_rows.MAX_POSITIONS_LAID", 10)
    assert [lengths[group] for group in row_groups(lengths)] == groups
