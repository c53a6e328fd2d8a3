"""Memory cells by compiled code."""

import ctypes
import math
from typing import Optional

import torch

from elmo_scratch.modules.lstms.memory_cells.memory_cells import MemoryCells, Opened
from elmo_scratch.native_library import COUNT, POINTER, SIZE, functions, reaches

MEMORY = {torch.float32: torch.float32, torch.float64: torch.float64, torch.bfloat16: torch.float32}
"""The types of gates, and that of the memory on which they act."""

OPEN_GATES = [POINTER, POINTER, SIZE, SIZE, ctypes.c_double, POINTER, POINTER, COUNT]
OPEN_GATES_BACK = [*[POINTER] * 3, SIZE, SIZE, ctypes.c_double, *[POINTER] * 3, COUNT]
"""What its functions take."""


class CompiledMemoryCells(MemoryCells):
    """
    On a processor: each number is read once, where PyTorch's operations each go through all of
    them. Of the gates it keeps what it was given, as to squash them again costs less than to write
    and to read what came of it.

    # Parameters

    library : `ctypes.CDLL`
        Of native/.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._open_gates = functions(library, "open_gates", OPEN_GATES)
        self._open_gates_back = functions(library, "open_gates_back", OPEN_GATES_BACK)

    @staticmethod
    def serves(dtype: torch.dtype, cell: torch.Tensor) -> bool:
        """
        # Parameters

        dtype : `torch.dtype`
            Of gates.
        cell : `torch.Tensor`
            Memory.

        # Returns

        `bool`
            Whether there is code for them.
        """
        return reaches(cell) and MEMORY.get(dtype) == cell.dtype

    def open_gates(self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]) -> Opened:
        gates, cell = gates.contiguous(), cell.contiguous()
        if gates.size(0) != cell.size(0) or gates.size(1) != 4 * cell.size(1):
            raise ValueError(
                f"expected four gates for each memory cell, but got gates of shape "
                f"{tuple(gates.shape)} and memory of shape {tuple(cell.shape)}"
            )
        after = torch.empty_like(cell)
        output = torch.empty_like(cell, dtype=gates.dtype)
        self._open_gates[gates.dtype](
            gates.data_ptr(),
            cell.data_ptr(),
            *cell.shape,
            math.inf if clip is None else clip,
            after.data_ptr(),
            output.data_ptr(),
            torch.get_num_threads(),
        )
        return Opened(after, output, gates)

    def open_gates_back(
        self,
        opened: Opened,
        previous_cell: torch.Tensor,
        clip: Optional[float],
        output_gradient: torch.Tensor,
        cell_gradient: torch.Tensor,
        gates_gradient: torch.Tensor,
    ) -> None:
        dtype = opened.gates.dtype
        previous_cell = previous_cell.contiguous()
        output_gradient = output_gradient.to(dtype).contiguous()
        self._open_gates_back[dtype](
            opened.gates.data_ptr(),
            previous_cell.data_ptr(),
            opened.cell.data_ptr(),
            *previous_cell.shape,
            math.inf if clip is None else clip,
            output_gradient.data_ptr(),
            cell_gradient.data_ptr(),
            gates_gradient.data_ptr(),
            torch.get_num_threads(),
        )
