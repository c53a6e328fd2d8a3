"""Which memory cells an LSTM uses."""

import torch

from elmo_scratch.kernels.lstm.memory_cells.compiled import DTYPES, CompiledMemoryCells
from elmo_scratch.kernels.lstm.memory_cells.jitted import JittedMemoryCells, kernels_work
from elmo_scratch.kernels.lstm.memory_cells.memory_cells import MemoryCells
from elmo_scratch.kernels.lstm.memory_cells.plain import PlainMemoryCells
from elmo_scratch.kernels.native_library import LIBRARY, is_plain, reaches

PLAIN, JITTED = PlainMemoryCells(), JittedMemoryCells()
COMPILED = None if LIBRARY is None else CompiledMemoryCells(LIBRARY)


def memory_cells_for(dtype: torch.dtype, cell: torch.Tensor, *others: torch.Tensor) -> MemoryCells:
    """
    # Parameters

    dtype : `torch.dtype`
        Of gates.
    cell : `torch.Tensor`
        Memory.
    others : `torch.Tensor`
        Of what gates are made.

    # Returns

    `MemoryCells`
        Those of compiled code where there is any, on a GPU of a kernel if it can be compiled.
    """
    if dtype not in DTYPES or cell.dtype != torch.float32:
        return PLAIN
    if cell.is_cuda:
        return JITTED if is_plain(cell, *others) and kernels_work(cell.device) else PLAIN
    return COMPILED if COMPILED is not None and reaches(cell, *others) else PLAIN
