import math
from typing import List, Optional

import pytest
import torch

from elmo_scratch.kernels.lstm import cells as choice
from elmo_scratch.kernels.lstm.cells import CellOutput, CompiledMemoryCells
from tests.kernels.lstm.memory_cells.plain_test import by_the_formula

pytestmark = pytest.mark.skipif(
    choice.COMPILED is None, reason="the memory cells were not compiled here"
)

each_clip = pytest.mark.parametrize("clip", [None, 0.4])
each_width = pytest.mark.parametrize("cells", [1, 15, 16, 33, 1030])
"""Less and more than the processor's instructions take at once."""


@pytest.fixture
def cells_at_work() -> CompiledMemoryCells:
    assert choice.COMPILED is not None
    return choice.COMPILED


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (3 * torch.randn(*shape)).to(dtype)


@each_clip
@pytest.mark.parametrize("active", [1, 3, 40])
@each_width
def test_memory_and_output_are_those_of_the_formula(
    cells: int,
    active: int,
    clip: Optional[float],
    cells_at_work: CompiledMemoryCells,
    two_threads: None,
) -> None:
    gates, cell = random(active, 4 * cells), random(active, cells)
    expected = by_the_formula(gates.double(), cell.double(), clip)
    done = cells_at_work.lstm_cell(gates, cell, clip)
    assert torch.allclose(done.cell.double(), expected[0], rtol=6e-7, atol=6e-7)
    assert torch.allclose(done.output.double(), expected[1], rtol=6e-7, atol=6e-7)
    assert done.cell.dtype == done.output.dtype == torch.float32


@each_clip
@pytest.mark.parametrize("dtype, closeness", [(torch.float32, 4e-6), (torch.bfloat16, 2e-2)])
@each_width
def test_the_way_back_is_that_of_autograd(
    cells: int,
    dtype: torch.dtype,
    closeness: float,
    clip: Optional[float],
    cells_at_work: CompiledMemoryCells,
    two_threads: None,
) -> None:
    gates, cell = random(9, 4 * cells, dtype=dtype), random(9, cells)
    from_cell, from_output = random(9, cells), random(9, cells, dtype=dtype)
    asking = [tensor.double().requires_grad_() for tensor in (gates, cell)]
    expected = torch.autograd.grad(
        by_the_formula(asking[0], asking[1], clip), asking, (from_cell.double(), from_output)
    )
    gates_gradient = torch.empty_like(gates)
    done = cells_at_work.lstm_cell(gates, cell, clip)
    cells_at_work.lstm_cell_backward(done, cell, clip, from_output, from_cell, gates_gradient)
    assert torch.allclose(gates_gradient.double(), expected[0], rtol=closeness, atol=closeness)
    assert torch.allclose(from_cell.double(), expected[1], rtol=4e-6, atol=4e-6)
    assert gates_gradient.any() and from_cell.any()


def squashed(numbers: torch.Tensor, cells: CompiledMemoryCells) -> List[torch.Tensor]:
    """Their σ and tanh, by gates that are wide open or shut: i tanh(j) alone, and f c alone."""
    wide, shut = torch.full_like(numbers, math.inf), torch.full_like(numbers, -math.inf)
    nothing, ones = torch.zeros_like(numbers), torch.ones_like(numbers)
    sigmoids = cells.lstm_cell(torch.cat([shut, nothing, numbers, wide], dim=1), ones, None)
    tanhs = cells.lstm_cell(torch.cat([wide, numbers, shut, wide], dim=1), nothing, None)
    return [sigmoids.cell, tanhs.cell]


def test_both_functions_are_exact_to_the_last_digits(cells_at_work: CompiledMemoryCells) -> None:
    numbers = torch.cat([torch.linspace(-86, 86, 100_001), torch.linspace(-1e-3, 1e-3, 10_001)])
    found = squashed(numbers.unsqueeze(0), cells_at_work)
    exact = [numbers.double().sigmoid(), numbers.double().tanh()]
    for ours, expected in zip(found, exact, strict=True):
        assert torch.allclose(ours.double(), expected, rtol=4e-7, atol=1e-37)


def test_extreme_numbers_go_to_the_limits(cells_at_work: CompiledMemoryCells) -> None:
    numbers = torch.tensor([[-math.inf, -1e30, -200.0, 0.0, 200.0, 1e30, math.inf]])
    sigmoids, tanhs = squashed(numbers, cells_at_work)
    assert sigmoids.tolist()[0][3:] == [0.5, 1, 1, 1]
    assert 0 <= sigmoids[0, :3].max() < 1e-37
    assert tanhs.tolist() == [[-1, -1, -1, 0, 1, 1, 1]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("gate", range(4))
def test_what_is_no_number_stays_none(
    gate: int, dtype: torch.dtype, cells_at_work: CompiledMemoryCells
) -> None:
    gates = torch.zeros(1, 4, 20, dtype=dtype)
    gates[0, gate, 7] = math.nan
    done = cells_at_work.lstm_cell(gates.flatten(1), torch.ones(1, 20), 3.0)
    assert done.output.isnan().nonzero().tolist() == [[0, 7]]
    assert done.cell.isnan().any() == (gate < 3)


@each_clip
def test_bfloat16_is_what_pytorch_rounds_to(
    clip: Optional[float], cells_at_work: CompiledMemoryCells
) -> None:
    gates, cell = random(7, 4 * 50, dtype=torch.bfloat16), random(7, 50)
    rounded = cells_at_work.lstm_cell(gates, cell, clip)
    whole = cells_at_work.lstm_cell(gates.float(), cell, clip)
    assert torch.equal(rounded.cell, whole.cell)
    assert torch.equal(rounded.output, whole.output.to(torch.bfloat16))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_number_depends_on_its_place_or_on_others(
    dtype: torch.dtype, cells_at_work: CompiledMemoryCells, two_threads: None
) -> None:
    gates, cell = random(300, 4, 71, dtype=dtype), random(300, 71)
    from_output, from_cell = random(300, 71, dtype=dtype), random(300, 71)

    def run(rows: slice, cells: slice) -> List[torch.Tensor]:
        before = cell[rows, cells].contiguous()
        done = cells_at_work.lstm_cell(gates[rows, :, cells].flatten(1), before, 2.0)
        gradients = torch.empty(done.gates.shape, dtype=dtype)
        d_cell = from_cell[rows, cells].clone()
        d_output = from_output[rows, cells]
        cells_at_work.lstm_cell_backward(done, before, 2.0, d_output, d_cell, gradients)
        return [done.cell, done.output, d_cell, *gradients.chunk(4, dim=1)]

    together = run(slice(None), slice(None))
    for start in range(71):
        some = slice(start, min(start + 1 + start % 19, 71))
        apart = run(slice(start, start + 3), some)
        for whole, part in zip(together, apart, strict=True):
            assert torch.equal(whole[start : start + 3, some], part)


def test_numbers_that_do_not_lie_side_by_side_are_read_too(
    cells_at_work: CompiledMemoryCells,
) -> None:
    gates, cell = random(4 * 5, 6).t(), random(5, 6).t()
    done = cells_at_work.lstm_cell(gates, cell, None)
    expected = cells_at_work.lstm_cell(gates.contiguous(), cell.contiguous(), None)
    assert all(torch.equal(*pair) for pair in zip(done, expected, strict=True))


@pytest.mark.parametrize("shape", [(2, 5), (3, 4)])
def test_memory_that_does_not_fit_is_an_error(
    shape: List[int], cells_at_work: CompiledMemoryCells
) -> None:
    with pytest.raises(ValueError, match=r"gates and memory of shape \(2, 16\) of torch.float32,"):
        cells_at_work.lstm_cell(torch.zeros(2, 16), torch.zeros(shape), None)


@pytest.mark.parametrize(
    "gates, cell", [(torch.float64, torch.float64), (torch.float32, torch.bfloat16)]
)
def test_numbers_of_other_types_are_an_error(
    gates: torch.dtype, cell: torch.dtype, cells_at_work: CompiledMemoryCells
) -> None:
    with pytest.raises(ValueError, match="expected four gates in float32 or bfloat16"):
        cells_at_work.lstm_cell(torch.zeros(1, 4, dtype=gates), torch.zeros(1, 1, dtype=cell), 3)


def test_what_is_written_to_must_have_its_place(cells_at_work: CompiledMemoryCells) -> None:
    done = cells_at_work.lstm_cell(torch.zeros(3, 8), torch.zeros(3, 2), 3.0)
    for gradient in (torch.empty(3, 7), torch.empty(8, 3).t(), torch.empty(3, 8).double()):
        with pytest.raises(ValueError, match="expected four gates"):
            cells_at_work.lstm_cell_backward(
                done, torch.zeros(3, 2), 3.0, torch.zeros(3, 2), torch.zeros(3, 2), gradient
            )


def test_what_others_kept_in_their_own_way_is_read_too(cells_at_work: CompiledMemoryCells) -> None:
    gates, cell = random(6, 8).bfloat16().float(), random(6, 2)
    from_output = random(6, 2)

    def back(done: CellOutput) -> List[torch.Tensor]:
        from_cell, gradients = torch.ones(6, 2), torch.empty(6, 8)
        cells_at_work.lstm_cell_backward(done, cell, 2.0, from_output, from_cell, gradients)
        return [from_cell, gradients]

    done = cells_at_work.lstm_cell(gates, cell, 2.0)
    turned = CellOutput(*(part.t().contiguous().t() for part in done))
    rounded = done._replace(gates=gates.bfloat16())
    for others in (turned, rounded):
        assert all(torch.equal(*pair) for pair in zip(back(others), back(done), strict=True))


def test_without_rows_there_is_nothing(cells_at_work: CompiledMemoryCells) -> None:
    done = cells_at_work.lstm_cell(torch.zeros(0, 16), torch.zeros(0, 4), 3.0)
    assert done.cell.shape == done.output.shape == (0, 4)
