from typing import List, Optional

import pytest
import torch

from elmo_scratch.kernels.library import INSTRUCTIONS, Instructions
from elmo_scratch.kernels.linear import PackedLinear, rows_are_independent
from tests.kernels.frozen_weights import EACH_INDEPENDENT_DTYPE

ROWS, INPUTS, OUTPUTS = 3, 5, 7

each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])


def random_weight(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(13)
    return torch.randn(OUTPUTS, INPUTS).to(dtype)


@pytest.mark.parametrize("bias", [None, [0.5, 0.25]])
def test_a_product_can_be_followed_on_paper(bias: Optional[list]) -> None:
    product = PackedLinear(torch.tensor([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]]), torch.float32)
    vectors = torch.tensor([[1.0, 1.0, 1.0], [2.0, 0.0, -1.0]])
    expected = torch.tensor([[6.0, 3.0], [-1.0, -4.0]])
    if bias is None:
        assert torch.equal(product(vectors), expected)
    else:
        assert torch.equal(product(vectors, torch.tensor(bias)), expected + torch.tensor(bias))


@each_dtype
@pytest.mark.parametrize("rows", [0, 1, ROWS])
def test_it_equals_an_ordinary_product(dtype: torch.dtype, rows: int) -> None:
    weight, bias, vectors = random_weight(dtype), torch.randn(OUTPUTS), torch.randn(rows, INPUTS)
    vectors = vectors.to(dtype)  # so that rounding them changes nothing
    done = PackedLinear(weight, dtype)(vectors.float(), bias.to(dtype).float())
    exact = vectors.double() @ weight.double().t() + bias.to(dtype).double()
    assert done.dtype == dtype
    assert torch.allclose(done.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-5)


@each_dtype
@pytest.mark.parametrize("rows", [0, 1, ROWS])
def test_a_product_is_added_to_what_there_is(dtype: torch.dtype, rows: int) -> None:
    weight, summand = random_weight(dtype), torch.randn(rows, OUTPUTS).to(dtype)
    vectors = torch.randn(rows, INPUTS).to(dtype)
    exact = summand.double() + vectors.double() @ weight.double().t()
    done = PackedLinear(weight, dtype)(vectors, summand=summand)
    assert done.dtype == dtype
    assert torch.allclose(done.double(), exact, rtol=torch.finfo(dtype).eps, atol=1e-5)


def test_vectors_may_lie_scattered_in_memory() -> None:
    product, vectors = PackedLinear(random_weight(), torch.float32), torch.randn(INPUTS, 2 * ROWS)
    scattered = vectors.t()[::2]
    assert torch.equal(product(scattered), product(scattered.contiguous()))
    summand = torch.randn(ROWS, 3 * OUTPUTS)[:, OUTPUTS : 2 * OUTPUTS]
    done = product(scattered.contiguous(), summand=summand.clone())
    assert torch.equal(product(scattered, summand=summand), done)


def test_weights_may_lie_scattered_in_memory() -> None:
    weight = random_weight()
    vectors = torch.randn(ROWS, OUTPUTS)
    done = PackedLinear(weight.t(), torch.float32)(vectors)
    assert torch.allclose(done, vectors @ weight, atol=1e-5)


def test_later_changes_of_the_weights_are_not_seen() -> None:
    weight = random_weight()
    product, vectors = PackedLinear(weight, torch.bfloat16), torch.randn(ROWS, INPUTS)
    before = product(vectors)
    weight.zero_()
    assert torch.equal(product(vectors), before)


def test_sums_in_bfloat16_are_kept_in_more_precision() -> None:
    # 512 ones summed in bfloat16 would stop at 256.
    product = PackedLinear(torch.ones(OUTPUTS, 512), torch.bfloat16)
    assert set(product(torch.ones(ROWS, 512)).flatten().tolist()) == {512.0}


def test_it_works_without_onednn() -> None:
    with torch.backends.mkldnn.flags(enabled=False):
        product = PackedLinear(random_weight(), torch.float32)
    vectors, summand = torch.randn(ROWS, INPUTS), torch.randn(ROWS, OUTPUTS)
    expected = vectors @ random_weight().t()
    assert torch.allclose(product(vectors), expected, atol=1e-5)
    assert torch.allclose(product(vectors, summand=summand), summand + expected, atol=1e-5)


@pytest.mark.parametrize("dtype", EACH_INDEPENDENT_DTYPE)
@pytest.mark.parametrize(
    "inputs, outputs", [(INPUTS, OUTPUTS), (67, 37), (512, 67), (2048, 67), (4096, 512)]
)
def test_a_row_does_not_depend_on_how_many_rows_come_with_it(
    inputs: int, outputs: int, dtype: torch.dtype
) -> None:
    torch.manual_seed(13)
    product = PackedLinear(torch.randn(outputs, inputs), dtype)
    vectors, summands = torch.randn(70, inputs), torch.randn(70, outputs).to(dtype)
    bias = torch.randn(outputs)
    together, added = product(vectors, bias), product(vectors, summand=summands.clone())
    for start, end in [(0, 1), (69, 70), (0, 2), (11, 16), (3, 70)]:
        few, summand = vectors[start:end], summands[start:end].clone()
        assert torch.equal(product(few, bias), together[start:end])
        assert torch.equal(product(few, summand=summand), added[start:end])


def test_without_onednn_equal_bits_are_not_promised() -> None:
    with torch.backends.mkldnn.flags(enabled=False):
        assert not rows_are_independent.__wrapped__(torch.float32)
    assert not rows_are_independent(torch.float64)


def test_a_product_whose_rows_depend_on_their_number_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    multiply = PackedLinear.__call__

    def uneven(self: PackedLinear, vectors: torch.Tensor) -> torch.Tensor:
        return multiply(self, vectors) + (len(vectors) == 2) * 1e-3

    monkeypatch.setattr(PackedLinear, "__call__", uneven)
    assert not rows_are_independent.__wrapped__(torch.float32)


@each_dtype
def test_without_rows_there_is_nothing(dtype: torch.dtype) -> None:
    product, none = PackedLinear(random_weight(), dtype), torch.zeros(0, INPUTS)
    assert product(none).shape == (0, OUTPUTS)
    assert product(none, summand=torch.zeros(0, OUTPUTS).to(dtype)).shape == (0, OUTPUTS)


@pytest.mark.skipif(INSTRUCTIONS < Instructions.TILES, reason="this processor has no tiles")
def test_where_tiles_do_not_reach_it_is_an_ordinary_product() -> None:
    product, vectors = PackedLinear(random_weight(), torch.bfloat16), torch.randn(ROWS, INPUTS)
    summand = torch.randn(ROWS, OUTPUTS).to(torch.bfloat16)
    expected = [product(vectors), product(vectors, summand=summand)]

    def both(vectors: torch.Tensor, summand: torch.Tensor) -> List[torch.Tensor]:
        return [product(vectors), product(vectors, summand=summand)]

    mapped = torch.func.vmap(both)(vectors.unsqueeze(0), summand.unsqueeze(0))
    for ours, tiled in zip(mapped, expected, strict=True):
        assert torch.allclose(ours[0].float(), tiled.float(), rtol=2**-6, atol=0.02)


@each_dtype
@pytest.mark.parametrize("inputs", [INPUTS - 1, INPUTS + 1])
def test_vectors_of_another_size_are_an_error(dtype: torch.dtype, inputs: int) -> None:
    product, vectors = PackedLinear(random_weight(), dtype), torch.randn(ROWS, inputs)
    with pytest.raises(RuntimeError):
        product(vectors)
    with pytest.raises(RuntimeError):
        product(vectors, summand=torch.zeros(ROWS, OUTPUTS).to(dtype))
