"""Memory cells by PyTorch's operations."""

from typing import Optional

import torch

from elmo_scratch.kernels.lstm.memory_cells.memory_cells import CellOutput, MemoryCells
from elmo_scratch.kernels.sigmoid import sigmoid_


class PlainMemoryCells(MemoryCells):
    """
    On every device and in every precision. Of the gates it keeps σ(i), tanh(j), σ(f), σ(o), of the
    type of memory.
    """

    def lstm_cell(
        self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
    ) -> CellOutput:
        dtype = gates.dtype
        gates = gates.to(cell.dtype)
        num_cells = cell.size(1)
        # One pass over all four: tanh(j) = 2σ(2j) - 1.
        squashed = gates[:, num_cells : 2 * num_cells]
        squashed.mul_(2.0)
        sigmoid_(gates)
        squashed.mul_(2.0).sub_(1.0)
        i, j, f, o = gates.chunk(4, dim=1)  # each (active, cell)
        after = torch.mul(f, cell).addcmul_(i, j)
        if clip is not None:
            after.clamp_(-clip, clip)
        return CellOutput(after, tanh(after).mul_(o).to(dtype), gates)

    def lstm_cell_backward(
        self,
        cell_output: CellOutput,
        previous_cell: torch.Tensor,
        clip: Optional[float],
        output_gradient: torch.Tensor,
        cell_gradient: torch.Tensor,
        gates_gradient: torch.Tensor,
    ) -> None:
        aten = torch.ops.aten
        squashed = tanh(cell_output.cell)
        output_gradient = output_gradient.to(squashed.dtype)
        i, j, f, o = cell_output.gates.chunk(4, dim=1)
        cell_gradient += aten.tanh_backward(output_gradient * o, squashed)
        if clip is not None:
            aten.hardtanh_backward(
                cell_gradient, cell_output.cell, -clip, clip, grad_input=cell_gradient
            )
        d_i, d_j, d_f, d_o = gates_gradient.chunk(4, dim=1)
        d_i.copy_(aten.sigmoid_backward(cell_gradient * j, i))
        d_j.copy_(aten.tanh_backward(cell_gradient * i, j))
        d_f.copy_(aten.sigmoid_backward(cell_gradient * previous_cell, f))
        d_o.copy_(aten.sigmoid_backward(squashed.mul_(output_gradient), o))
        cell_gradient *= f


def tanh(numbers: torch.Tensor) -> torch.Tensor:
    """
    The hyperbolic tangent, within rounding, by `2σ(2x) - 1`: on processors PyTorch's `tanh` takes
    several times as long as its `sigmoid`.
    """
    return sigmoid_(numbers.mul(2.0)).mul_(2.0).sub_(1.0)
