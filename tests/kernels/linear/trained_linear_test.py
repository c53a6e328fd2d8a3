from typing import List

import pytest
import torch

from elmo_scratch.kernels.linear import TrainedLinear

ROWS, INPUTS, OUTPUTS = 40, 19, 23


def asking() -> List[torch.Tensor]:
    torch.manual_seed(13)
    tensors = [torch.randn(ROWS, INPUTS), torch.randn(OUTPUTS, INPUTS), torch.randn(OUTPUTS)]
    return [tensor.requires_grad_() for tensor in tensors]


def rounded(vectors: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return TrainedLinear.apply(vectors.to(torch.bfloat16), weight, bias, torch.bfloat16)


def test_it_is_pytorchs_layer_of_rounded_numbers() -> None:
    tensors = asking()
    ours = rounded(*tensors)
    theirs = torch.nn.functional.linear(*(tensor.to(torch.bfloat16) for tensor in tensors))
    assert ours.dtype == torch.bfloat16
    assert torch.allclose(ours, theirs, rtol=2**-7, atol=1e-3)


def test_gradients_are_close_to_exact_ones() -> None:
    tensors = asking()
    back = torch.randn(ROWS, OUTPUTS)
    ours = torch.autograd.grad(rounded(*tensors), tensors, back.to(torch.bfloat16))
    exact = torch.autograd.grad(torch.nn.functional.linear(*tensors), tensors, back)
    for one, other in zip(ours, exact, strict=True):
        assert one.dtype == torch.float32 and one.shape == other.shape
        assert (one - other).norm() <= 0.01 * other.norm()


def test_in_the_type_of_the_weights_it_and_its_gradients_are_pytorchs() -> None:
    tensors = asking()
    ours = TrainedLinear.apply(*tensors, torch.float32)
    theirs = torch.nn.functional.linear(*tensors)
    assert torch.allclose(ours, theirs, atol=1e-5)
    back = torch.randn(ROWS, OUTPUTS)
    gradients = torch.autograd.grad(ours, tensors, back)
    for one, other in zip(gradients, torch.autograd.grad(theirs, tensors, back), strict=True):
        assert one.dtype == torch.float32 and torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("number", range(3))
def test_what_asks_for_a_gradient_alone_gets_it(number: int) -> None:
    tensors = asking()
    expected = torch.autograd.grad(rounded(*tensors).float().square().sum(), tensors)[number]
    alone = [tensor.detach() for tensor in tensors]
    alone[number].requires_grad_()
    rounded(*alone).float().square().sum().backward()
    gradient = alone[number].grad
    assert gradient is not None and torch.equal(gradient, expected)
    assert [tensor.grad is None for tensor in alone].count(False) == 1


def test_gradients_of_gradients_are_refused() -> None:
    tensors = asking()
    loss = rounded(*tensors).float().square().sum()
    (gradient,) = torch.autograd.grad(loss, [tensors[0]], create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_a_weight_that_changes_before_the_way_back_is_noticed() -> None:
    tensors = asking()
    loss = rounded(*tensors).float().sum()
    with torch.no_grad():
        tensors[1].zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
