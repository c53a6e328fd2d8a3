import pytest
import torch

from elmo_scratch.modules.products import weight_gradient
from elmo_scratch.modules.products.weight_gradient import ROWS_OF_A_PIECE


@pytest.mark.parametrize("outputs", [1, 7, ROWS_OF_A_PIECE, 2 * ROWS_OF_A_PIECE + 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_it_is_the_sum_over_rows(outputs: int, dtype: torch.dtype) -> None:
    torch.manual_seed(13)
    gradients, vectors = torch.randn(40, outputs).to(dtype), torch.randn(40, 300).to(dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    result = weight_gradient(gradients, vectors, wide)
    exact = gradients.double().t() @ vectors.double()
    assert result.shape == (outputs, 300) and result.dtype == wide
    assert torch.allclose(result.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-4)


def test_without_rows_it_is_zero() -> None:
    for rounded in (torch.float32, torch.bfloat16):
        none = torch.zeros(0, 1200, dtype=rounded)
        result = weight_gradient(none, none[:, :700], torch.float32)
        assert result.shape == (1200, 700) and not result.any()


def test_it_is_not_changed_by_the_next_one() -> None:
    factors = [torch.full((2, 600), number) for number in (1.0, 2.0)]
    first, second = (weight_gradient(factor, factor, torch.float32) for factor in factors)
    assert first.eq(2).all() and second.eq(8).all()
