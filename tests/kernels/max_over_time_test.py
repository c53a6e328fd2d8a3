import math

import pytest
import torch

from elmo_scratch.kernels import char_convolution
from elmo_scratch.kernels.char_convolution import max_over_time

each_type = pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
compiled_and_plain = pytest.mark.usefixtures("each_code")
COMPILED = char_convolution, "MAXIMA"


@compiled_and_plain
@each_type
@pytest.mark.usefixtures("each_number_of_threads")
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 33), (0, 4, 2), (70, 9, 80)])
def test_maxima_and_gradients_are_those_of_pytorch(
    shape: torch.Size, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = torch.randn(shape).to(dtype).requires_grad_()
    expected = responses.max(dim=1).values
    ours = max_over_time(responses)
    assert torch.equal(ours, expected) and ours.dtype == dtype
    weights = torch.randn(expected.shape).to(dtype)
    (gradient,) = torch.autograd.grad(ours, responses, weights)
    assert torch.equal(gradient, torch.autograd.grad(expected, responses, weights)[0])


@compiled_and_plain
@each_type
def test_of_equal_responses_the_first_gets_the_gradient(dtype: torch.dtype) -> None:
    responses = torch.tensor([[[1.0], [3.0], [2.0], [3.0]]], dtype=dtype).requires_grad_()
    max_over_time(responses).sum().backward()
    assert responses.grad.flatten().tolist() == [0, 1, 0, 0]


@compiled_and_plain
@each_type
def test_the_first_that_is_no_number_is_the_highest(dtype: torch.dtype) -> None:
    numbers = [1.0, math.inf, math.nan, 5.0, math.nan]
    responses = torch.tensor(numbers, dtype=dtype).view(1, 5, 1).requires_grad_()
    highest = max_over_time(responses)
    assert highest.isnan().all()
    highest.sum().backward()
    assert responses.grad.flatten().tolist() == [0, 0, 1, 0, 0]


@compiled_and_plain
def test_responses_that_do_not_lie_side_by_side_are_read_too() -> None:
    responses = torch.randn(7, 6, 5).double().transpose(0, 2).requires_grad_()
    assert torch.autograd.gradcheck(max_over_time, (responses,))


@compiled_and_plain
def test_without_gradients_the_maxima_are_the_same() -> None:
    responses = torch.randn(4, 3, 5)
    with_gradients = max_over_time(responses.clone().requires_grad_())
    assert torch.equal(max_over_time(responses), with_gradients)
    with torch.no_grad():
        assert torch.equal(max_over_time(responses.requires_grad_()), with_gradients)


@compiled_and_plain
def test_gradients_have_gradients() -> None:
    responses = torch.randn(3, 4, 5).double().requires_grad_()
    assert torch.autograd.gradgradcheck(
        lambda responses: max_over_time(responses).pow(3), (responses,)
    )


@compiled_and_plain
def test_what_replaces_operations_sees_pytorchs() -> None:
    responses = torch.randn(3, 4, 5)
    expected = torch.func.grad(lambda responses: responses.amax(dim=1).sum())(responses)
    ours = torch.func.grad(lambda responses: max_over_time(responses).sum())(responses)
    assert torch.equal(ours, expected)
    jacobian = torch.autograd.functional.jacobian(max_over_time, responses, vectorize=True)
    assert torch.equal(jacobian.sum(dim=(0, 1)), expected)


@compiled_and_plain
def test_without_windows_there_is_no_maximum() -> None:
    with pytest.raises(IndexError):
        max_over_time(torch.zeros(2, 0, 3).requires_grad_())
