import pytest
import torch

from elmo_scratch.modules.token_encoders.token_encoder import ID_TYPES, check_ids

WRONG_TYPES = [torch.bool, torch.uint8, torch.int8, torch.float16, torch.float32, torch.float64]


@pytest.mark.parametrize("dtype", ID_TYPES)
def test_ids_of_every_type_with_room_pass(dtype: torch.dtype) -> None:
    check_ids(torch.tensor([[0, 3], [6, 1]], dtype=dtype), "words", 7)
    check_ids(torch.zeros(2, 0, dtype=dtype), "words", 7)


@pytest.mark.parametrize("dtype", WRONG_TYPES)
def test_another_type_is_named(dtype: torch.dtype) -> None:
    for shape in ((2, 3), (2, 0)):
        ids = torch.ones(shape, dtype=dtype)
        with pytest.raises(ValueError, match=f"ids of words of the type .* but got {dtype}"):
            check_ids(ids, "words")
        with pytest.raises(ValueError, match=f"ids of words of the type .* but got {dtype}"):
            check_ids(ids, "words", 7)


@pytest.mark.parametrize("bad", [-1, 7, 2**16 + 3, 3 - 2**16])
def test_ids_out_of_range_are_named(bad: int) -> None:
    found = f"from {min(bad, 2)} to {max(bad, 2)}"
    with pytest.raises(ValueError, match=f"ids of words from 0 to 6, but got ids {found}"):
        check_ids(torch.tensor([2, bad]), "words", 7)
