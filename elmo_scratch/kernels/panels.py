"""Weights packed in panels, the layout that compiled code reads."""

import ctypes

import torch

from elmo_scratch.kernels.library import (
    COUNT,
    INSTRUCTIONS,
    LIBRARY,
    POINTER,
    Instructions,
    PanelMatrix,
    functions,
)
from elmo_scratch.kernels.memory import buffer_pool

OUTPUTS_TOGETHER = 64
"""Outputs of a panel; the last panel is padded with zeros."""

INPUTS_TOGETHER = 32
"""
Rounded weights in panels must have a multiple of so many inputs: AMX tiles read so many at once.
"""


_DTYPES = {torch.float32: Instructions.AVX2, torch.bfloat16: Instructions.BFLOAT16}
"""The precisions of products for which there are panels, and the instructions that read them."""

PACK = functions(
    LIBRARY,
    "pack_panels",
    [dtype for dtype, needed in _DTYPES.items() if INSTRUCTIONS >= needed],
    [ctypes.POINTER(PanelMatrix), POINTER, COUNT, COUNT],
)


def pack_weights(
    weight: torch.Tensor,
    dtype: torch.dtype,
    has_tiles: bool,
    *,
    is_turned: bool = False,
    is_of_gates: bool = False,
) -> torch.Tensor:
    """
    Packs a float32 matrix of shape `(rows, columns)`. The result has the shape `(outputs, inputs)`,
    with padded outputs, and the type `dtype`, the precision of products.

    By default rows are outputs; with `is_turned`, columns are. With `is_of_gates` the rows are the
    gates of an LSTM, and a panel holds all four gates of 16 cells. `has_tiles` packs for AMX tiles.
    """
    weight = weight.contiguous()
    outputs, inputs = reversed(weight.shape) if is_turned else weight.shape
    packed = buffer_pool.empty((outputs + -outputs % OUTPUTS_TOGETHER, inputs), dtype)
    matrix = PanelMatrix(weight.data_ptr(), *weight.shape, is_turned, is_of_gates)
    PACK[dtype](ctypes.byref(matrix), packed.data_ptr(), torch.get_num_threads(), has_tiles)
    return packed
