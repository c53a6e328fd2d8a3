from typing import Tuple

import pytest
import torch

from elmo_scratch.kernels import onednn
from elmo_scratch.kernels import weight_gradients as module
from elmo_scratch.kernels.weight_gradients import (
    OUTPUTS_AT_ONCE,
    add_weight_gradient,
    weight_gradients,
)


@pytest.fixture(params=["as it is", "oneDNN's products", "PyTorch's products"])
def each_processor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """This one, one without compiled code for gradients, and one without oneDNN as well."""
    if request.param != "as it is":
        monkeypatch.setattr(module, "can_multiply_gradients", lambda *_: False)
    if request.param == "PyTorch's products":
        monkeypatch.setattr(onednn, "can_multiply", lambda *_: False)


@pytest.mark.usefixtures("each_processor")
@pytest.mark.parametrize("widths", [(), (300,), (40, 24)])
@pytest.mark.parametrize("outputs", [1, 7, OUTPUTS_AT_ONCE, 2 * OUTPUTS_AT_ONCE + 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_they_are_the_sums_over_rows(
    outputs: int, dtype: torch.dtype, widths: Tuple[int, ...]
) -> None:
    torch.manual_seed(13)
    gradients = torch.randn(40, outputs).to(dtype)
    vectors = [torch.randn(40, width).to(dtype) for width in widths]
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    made = weight_gradients(gradients, vectors, wide)
    rounding = torch.finfo(dtype).eps
    assert len(made.weights) == len(vectors)
    for ours, part in zip(made.weights, vectors, strict=True):
        exact = gradients.double().t() @ part.double()
        assert ours.shape == (outputs, part.size(1)) and ours.dtype == wide
        assert ours.is_contiguous()
        assert torch.allclose(ours.double(), exact, rtol=rounding, atol=1e-4)
    exact = gradients.double().sum(dim=0)
    assert made.bias.shape == (outputs,) and made.bias.dtype == wide
    assert torch.allclose(made.bias.double(), exact, rtol=rounding, atol=1e-4)


@pytest.mark.usefixtures("each_processor")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_without_rows_they_are_zero(dtype: torch.dtype) -> None:
    none = torch.zeros(0, 1200, dtype=dtype)
    made = weight_gradients(none, [none[:, :700]], torch.float32)
    assert made.weights[0].shape == (1200, 700) and not made.weights[0].any()
    assert made.bias.shape == (1200,) and not made.bias.any()


def test_vectors_are_rounded_as_gradients_are() -> None:
    torch.manual_seed(13)
    gradients, vectors = torch.randn(40, 7).to(torch.bfloat16), torch.randn(40, 5)
    expected = weight_gradients(gradients, [vectors.to(torch.bfloat16)], torch.float32)
    made = weight_gradients(gradients, [vectors], torch.float32)
    assert torch.equal(made.weights[0], expected.weights[0])


def test_they_are_not_changed_by_the_next_ones() -> None:
    factors = [torch.full((2, 600), number) for number in (1.0, 2.0)]
    first, second = (weight_gradients(factor, [factor], torch.float32) for factor in factors)
    assert first.weights[0].eq(2).all() and second.weights[0].eq(8).all()


@pytest.mark.usefixtures("each_processor")
@pytest.mark.parametrize("rows, outputs", [(0, 9), (40, 7), (40, 300), (37, 2 * 128 + 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_one_is_added_to_others(
    rows: int, outputs: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "OUTPUTS_OF_A_SUM", 128)
    torch.manual_seed(13)
    gradients, vectors = torch.randn(rows, outputs).to(dtype), torch.randn(rows, 24).to(dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    before = torch.randn(outputs, 24, dtype=wide)
    total = before.clone()
    add_weight_gradient(total, gradients, vectors)
    exact = gradients.double().t() @ vectors.double()
    added = total.double() - before.double()
    assert torch.allclose(added, exact, rtol=torch.finfo(dtype).eps, atol=1e-4)
