"""Weights packed in panels, as compiled code reads them."""

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
"""A panel's outputs: those of the last one are filled up by zeros."""

INPUTS_TOGETHER = 32
"""What takes weights in panels has a multiple of so many inputs, where they are rounded: tiles read
so many at once."""


_DTYPES = {torch.float32: Instructions.AVX2, torch.bfloat16: Instructions.BFLOAT16}
"""The precisions of products for which there are panels, and what reads them."""

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
    # Parameters

    weight : `torch.Tensor`
        Shape `(rows, columns)`, in float32.
    dtype : `torch.dtype`
        The precision of products.
    has_tiles : `bool`
        Whether they are made by tiles.
    is_turned : `bool`, optional (default = `False`)
        Whether products go from what the rows stand for to what the columns do, and not from the
        columns to the rows.
    is_of_gates : `bool`, optional (default = `False`)
        Whether the rows are the gates of an LSTM, of which a panel has all four of 16 cells.

    # Returns

    `torch.Tensor`
        Shape `(outputs, inputs)`, the outputs filled up, of the type `dtype`.
    """
    weight = weight.contiguous()
    outputs, inputs = reversed(weight.shape) if is_turned else weight.shape
    packed = buffer_pool.empty((outputs + -outputs % OUTPUTS_TOGETHER, inputs), dtype)
    matrix = PanelMatrix(weight.data_ptr(), *weight.shape, is_turned, is_of_gates)
    PACK[dtype](ctypes.byref(matrix), packed.data_ptr(), torch.get_num_threads(), has_tiles)
    return packed
