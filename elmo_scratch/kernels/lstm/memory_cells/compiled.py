"""Memory cells by compiled code."""

import ctypes
import math
from typing import Optional, Sequence

import torch

from elmo_scratch.kernels.lstm.memory_cells.memory_cells import CellOutput, MemoryCells
from elmo_scratch.kernels.native_library import functions
from elmo_scratch.kernels.native_structs import COUNT, POINTER, SIZE

DTYPES = (torch.float32, torch.bfloat16)
"""The types of gates that it knows. Memory is in float32."""

LSTM_CELL = [POINTER, POINTER, SIZE, SIZE, ctypes.c_float, POINTER, POINTER, COUNT]
LSTM_CELL_BACKWARD = [*[POINTER] * 3, SIZE, SIZE, ctypes.c_float, *[POINTER] * 3, COUNT]
"""What its functions take."""


class CompiledMemoryCells(MemoryCells):
    """
    On a processor: each number is read once, where PyTorch's operations each go through all of
    them. It keeps the gates as they came: to compute their nonlinearities again costs less than to
    write and to read them.

    # Parameters

    library : `ctypes.CDLL`
        Of native/.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._lstm_cell = functions(library, "open_gates", DTYPES, LSTM_CELL)
        self._lstm_cell_backward = functions(
            library, "open_gates_backward", DTYPES, LSTM_CELL_BACKWARD
        )

    def lstm_cell(
        self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
    ) -> CellOutput:
        gates, cell = gates.contiguous(), cell.contiguous()
        _check([gates], [cell], [])
        after = torch.empty_like(cell)
        output = torch.empty_like(cell, dtype=gates.dtype)
        self._lstm_cell[gates.dtype](
            gates.data_ptr(),
            cell.data_ptr(),
            *cell.shape,
            math.nan if clip is None else clip,
            after.data_ptr(),
            output.data_ptr(),
            torch.get_num_threads(),
        )
        return CellOutput(after, output, gates)

    def lstm_cell_backward(
        self,
        cell_output: CellOutput,
        previous_cell: torch.Tensor,
        clip: Optional[float],
        output_gradient: torch.Tensor,
        cell_gradient: torch.Tensor,
        gates_gradient: torch.Tensor,
    ) -> None:
        dtype = gates_gradient.dtype
        # What was saved for the backward pass may have been kept by others, in their own way.
        gates, output_gradient = (
            part.to(dtype).contiguous() for part in (cell_output.gates, output_gradient)
        )
        cell, previous_cell = (
            part.to(torch.float32).contiguous() for part in (cell_output.cell, previous_cell)
        )
        cells = (cell, previous_cell, cell_gradient)
        _check([gates_gradient, gates], cells, [output_gradient])
        self._lstm_cell_backward[dtype](
            gates.data_ptr(),
            previous_cell.data_ptr(),
            cell.data_ptr(),
            *cell.shape,
            math.nan if clip is None else clip,
            output_gradient.data_ptr(),
            cell_gradient.data_ptr(),
            gates_gradient.data_ptr(),
            torch.get_num_threads(),
        )


def _check(
    gates: Sequence[torch.Tensor], cells: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
) -> None:
    """That nothing is read or written beside the numbers of these tensors."""
    rows, num_cells = cells[0].shape
    groups = [
        (gates, (rows, 4 * num_cells), gates[0].dtype),
        (cells, (rows, num_cells), torch.float32),
        (outputs, (rows, num_cells), gates[0].dtype),
    ]
    if gates[0].dtype in DTYPES and all(
        tensor.shape == shape and tensor.dtype == dtype and tensor.is_contiguous()
        for tensors, shape, dtype in groups
        for tensor in tensors
    ):
        return
    found = ", ".join(f"{tuple(tensor.shape)} of {tensor.dtype}" for tensor in (*gates, *cells))
    raise ValueError(
        f"expected four gates in float32 or bfloat16 for each memory cell in float32, but got "
        f"gates and memory of shape {found}"
    )
