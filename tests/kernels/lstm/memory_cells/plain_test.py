from typing import List, Optional, Tuple

import pytest
import torch

from elmo_scratch.kernels.lstm.cells import PlainMemoryCells, tanh

WIDTH, CELLS = 4, 6

each_clip = pytest.mark.parametrize("clip", [None, 0.4])


def random_gates(dtype: torch.dtype = torch.double) -> Tuple[torch.Tensor, torch.Tensor]:
    """Gates and memory."""
    torch.manual_seed(13)
    return torch.randn(WIDTH, 4 * CELLS).to(dtype), torch.randn(WIDTH, CELLS).double()


def by_the_formula(
    gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
) -> List[torch.Tensor]:
    i, j, f, o = gates.chunk(4, dim=1)
    after = f.sigmoid() * cell + i.sigmoid() * j.tanh()
    if clip is not None:
        after = after.clamp(-clip, clip)
    return [after, o.sigmoid() * after.tanh()]


def test_the_hyperbolic_tangent_is_exact_within_rounding() -> None:
    numbers = torch.linspace(-20, 20, 4001)
    assert torch.allclose(tanh(numbers), torch.tanh(numbers), rtol=0, atol=2e-7)
    exact = torch.tanh(numbers.double())
    assert torch.allclose(tanh(numbers.double()), exact, rtol=0, atol=1e-15)
    assert tanh(torch.tensor([-1e30, 0.0, 1e30])).tolist() == [-1, 0, 1]


@each_clip
def test_memory_and_output_are_those_of_the_formula(clip: Optional[float]) -> None:
    gates, cell = random_gates()
    expected = by_the_formula(gates, cell, clip)
    done = PlainMemoryCells().lstm_cell(gates.clone(), cell, clip)
    assert torch.allclose(done.cell, expected[0], rtol=0, atol=1e-14)
    assert torch.allclose(done.output, expected[1], rtol=0, atol=1e-14)
    assert clip is None or (done.cell.abs() == clip).any()


@each_clip
def test_the_way_back_is_that_of_autograd(clip: Optional[float]) -> None:
    gates, cell = (tensor.requires_grad_() for tensor in random_gates())
    from_cell, from_output = torch.randn(2, WIDTH, CELLS).double()
    expected = torch.autograd.grad(
        by_the_formula(gates, cell, clip), (gates, cell), (from_cell, from_output)
    )
    gates_gradient = torch.empty(WIDTH, 4 * CELLS).double()
    with torch.no_grad():
        done = PlainMemoryCells().lstm_cell(gates.clone(), cell, clip)
        PlainMemoryCells().lstm_cell_backward(
            done, cell, clip, from_output, from_cell, gates_gradient
        )
    assert torch.allclose(gates_gradient, expected[0], rtol=0, atol=1e-14)
    assert torch.allclose(from_cell, expected[1], rtol=0, atol=1e-14)


def test_memory_keeps_its_precision_where_gates_have_less() -> None:
    gates, cell = random_gates(torch.bfloat16)
    exact = by_the_formula(gates.double(), cell, None)
    done = PlainMemoryCells().lstm_cell(gates, cell, None)
    assert torch.allclose(done.cell, exact[0], rtol=0, atol=1e-14)
    assert done.output.dtype == torch.bfloat16
    assert torch.equal(done.output, exact[1].to(torch.bfloat16))
