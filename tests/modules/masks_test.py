import pytest
import torch

from elmo_scratch.modules.sequences import sentence_lengths


def test_lengths_are_the_real_tokens_of_each_row() -> None:
    mask = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])
    assert sentence_lengths(mask).tolist() == [3, 1, 0]
    assert sentence_lengths(mask[:0]).tolist() == []
    assert sentence_lengths(mask[:, :0]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("row", [[False, True, True], [True, False, True], [False, False, True]])
def test_a_hole_is_an_error(row: list) -> None:
    with pytest.raises(ValueError, match="real tokens of a row come before padding"):
        sentence_lengths(torch.tensor([[True, True, True], row]))
