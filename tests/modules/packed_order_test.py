from typing import List

import pytest
import torch

from elmo_scratch.modules import PackedOrder
from tests.kernels.lstm.plain_lstm import mask_of

LENGTHS = [3, 5, 0, 2]
NAMES = [["a", "b", "c", "-", "-"], list("defgh"), ["-"] * 5, ["i", "j", "-", "-", "-"]]


def names_at(places: torch.Tensor) -> str:
    laid_end_to_end = [name for row in NAMES for name in row]
    return "".join(laid_end_to_end[place] for place in places.tolist())


def test_all_first_positions_are_read_first_longer_sentences_before_shorter_ones() -> None:
    order = PackedOrder.of(mask_of(LENGTHS))
    assert names_at(order.left_to_right) == "daiebjfcgh"
    assert order.batch_sizes == [3, 3, 2, 1, 1]


def test_right_to_left_each_sentence_starts_at_its_own_end() -> None:
    assert names_at(PackedOrder.of(mask_of(LENGTHS)).right_to_left) == "hcjgbifaed"


def test_rows_are_numbered_longest_first_and_back() -> None:
    order = PackedOrder.of(mask_of(LENGTHS))
    assert order.sorted_indices.tolist() == [1, 0, 3, 2]
    assert order.sorted_indices[order.unsorted_indices].tolist() == [0, 1, 2, 3]


def test_sentences_of_the_same_length_keep_their_order() -> None:
    order = PackedOrder.of(mask_of([2, 3, 2, 3, 2]))
    assert order.sorted_indices.tolist() == [1, 3, 0, 2, 4]
    assert order.sorted_indices[order.unsorted_indices].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0)])
def test_where_there_is_nothing_to_read_there_is_no_step(shape: List[int]) -> None:
    order = PackedOrder.of(torch.ones(*shape, dtype=torch.bool))
    assert order.batch_sizes == []
    assert len(order.sorted_indices) == len(order.unsorted_indices) == shape[0]
    assert len(order.left_to_right) == len(order.right_to_left) == 0


def test_positions_that_no_sentence_reaches_are_no_steps() -> None:
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[0, :2] = True
    assert PackedOrder.of(mask).batch_sizes == [1, 1]


@pytest.mark.parametrize("row", [[False, True], [True, False, True], [False, False, True]])
def test_a_mask_with_a_hole_is_an_error(row: List[bool]) -> None:
    with pytest.raises(ValueError, match="real tokens of a row come before padding"):
        PackedOrder.of(torch.tensor([[True] * len(row), row]))
