import math
from typing import List

import pytest
import torch

from elmo_scratch.kernels import pointwise as module
from elmo_scratch.kernels.pointwise import highway_gate

compiled_and_plain = pytest.mark.usefixtures("each_code")
COMPILED = module, "CARRY"
each_type = pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])


def asking(rows: int, dim: int, dtype: torch.dtype = torch.float32) -> List[torch.Tensor]:
    """Vectors and two products in a precision."""
    torch.manual_seed(13)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    types = (wide, dtype, dtype)
    return [(3 * torch.randn(rows, dim)).to(own).requires_grad_() for own in types]


def by_formula(vectors: torch.Tensor, *products: torch.Tensor) -> torch.Tensor:
    transformed, carried = (part.double() for part in products)
    gate = torch.sigmoid(carried)
    return gate * torch.relu(transformed) + (1 - gate) * vectors.double()


@compiled_and_plain
@each_type
@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("rows, dim", [(0, 4), (1, 1), (3, 33), (70, 300)])
def test_it_and_its_gradients_follow_the_formula(rows: int, dim: int, dtype: torch.dtype) -> None:
    tensors = asking(rows, dim, dtype)
    ours, exact = highway_gate(*tensors), by_formula(*tensors)
    assert ours.dtype == tensors[0].dtype and ours.shape == (rows, dim)
    assert torch.allclose(ours.double(), exact, rtol=1e-5, atol=1e-6)
    back = torch.randn(rows, dim).double()
    gradients = torch.autograd.grad(ours, tensors, back.to(ours.dtype))
    expected = torch.autograd.grad(exact, tensors, back)
    for one, other, tensor in zip(gradients, expected, tensors, strict=True):
        assert one.dtype == tensor.dtype and one.shape == tensor.shape
        rounding = max(1e-5, torch.finfo(tensor.dtype).eps)
        assert torch.allclose(one.double(), other.double(), rtol=rounding, atol=1e-5)


@compiled_and_plain
def test_a_transformed_zero_has_no_gradient() -> None:
    vectors, transformed, carried = asking(1, 2)
    zeros = torch.zeros_like(transformed).requires_grad_()
    (gradient,) = torch.autograd.grad(highway_gate(vectors, zeros, carried).sum(), [zeros])
    assert not gradient.any()


@compiled_and_plain
@pytest.mark.parametrize("number", range(3))
def test_what_is_no_number_stays(number: int) -> None:
    tensors = [tensor.detach() for tensor in asking(2, 20)]
    tensors[number][1, 7] = math.nan
    found = highway_gate(*(tensor.requires_grad_() for tensor in tensors))
    assert found.isnan().nonzero().tolist() == [[1, 7]]


@compiled_and_plain
def test_numbers_that_do_not_lie_side_by_side_are_read_too() -> None:
    tensors = [tensor.detach() for tensor in asking(6, 5)]
    turned = [tensor.t().contiguous().t().requires_grad_() for tensor in tensors]
    straight = [tensor.clone().requires_grad_() for tensor in tensors]
    found = []
    for given in (turned, straight):
        result = highway_gate(*given)
        back = torch.ones(5, 6).t()
        found.append([result, *torch.autograd.grad(result, given, back)])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@compiled_and_plain
def test_results_stay_when_others_are_made() -> None:
    tensors = asking(300, 300)
    first = highway_gate(*tensors)
    kept = first.detach().clone()
    gradients = torch.autograd.grad(first.sum(), tensors, retain_graph=True)
    kept_gradients = [gradient.clone() for gradient in gradients]
    again = highway_gate(*(-tensor for tensor in tensors))
    again.sum().backward()
    assert torch.equal(first, kept)
    for one, other in zip(gradients, kept_gradients, strict=True):
        assert torch.equal(one, other)


def test_what_replaces_operations_sees_pytorchs() -> None:
    tensors = asking(3, 4)
    ours = torch.func.grad(lambda *given: highway_gate(*given).sum(), argnums=(0, 1, 2))(*tensors)
    expected = torch.autograd.grad(by_formula(*tensors).sum(), tensors)
    for one, other in zip(ours, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
