"""The gradients of matrices of weights, by the processor's tiles."""

import ctypes
from typing import List, Sequence, Tuple

import torch

from elmo_scratch.kernels.native_library import (
    INSTRUCTIONS,
    LIBRARY,
    Instructions,
    functions,
    reaches,
)
from elmo_scratch.kernels.native_structs import COUNT, AmxGradientPart, AmxGradients
from elmo_scratch.kernels.recycled_memory import RECYCLED

TOGETHER = 32
"""Sizes are filled up to multiples of it, by zeros."""

DTYPES = (torch.bfloat16,)
"""The precision of products."""


_OWN = LIBRARY if INSTRUCTIONS == Instructions.TILES else None
MULTIPLY = functions(_OWN, "multiply_gradients", DTYPES, [ctypes.POINTER(AmxGradients), COUNT])


def can_multiply_gradients(
    gradients: torch.Tensor, vectors: Sequence[torch.Tensor], dtype: torch.dtype
) -> bool:
    """
    # Parameters

    gradients, vectors
        As in `multiply_gradients`.
    dtype : `torch.dtype`
        The type of the weights.

    # Returns

    `bool`
        Whether there is compiled code for that.
    """
    return (
        gradients.dtype in MULTIPLY
        and dtype == torch.float32
        and gradients.dim() == 2
        and all(part.dim() == 2 and len(part) == len(gradients) for part in vectors)
        and all(part.dtype == gradients.dtype for part in vectors)
        and reaches(gradients, *vectors)
    )


def multiply_gradients(
    gradients: torch.Tensor, vectors: Sequence[torch.Tensor]
) -> Tuple[List[torch.Tensor], torch.Tensor]:
    """
    # Parameters

    gradients : `torch.Tensor`
        Shape `(rows, outputs)`, in bfloat16.
    vectors : `Sequence[torch.Tensor]`
        Each of shape `(rows, inputs)`, in bfloat16.

    # Returns

    `Tuple[List[torch.Tensor], torch.Tensor]`
        For each of `vectors` its gradient, of shape `(outputs, inputs)`, and the sum of `gradients`
        over rows, of shape `(outputs,)`; in float32, and not rounded on the way.
    """
    rows, outputs = gradients.shape
    dtype, gradients = gradients.dtype, gradients.contiguous()
    sums = torch.empty(outputs, dtype=torch.float32, device="cpu")
    vectors = [part.contiguous() for part in vectors]
    packed = [RECYCLED.empty((_filled(part.size(1)), _filled(rows)), dtype) for part in vectors]
    made = [RECYCLED.empty((outputs, part.size(1)), torch.float32) for part in vectors]
    parts = [
        AmxGradientPart(part.data_ptr(), part.size(1), place.data_ptr(), result.data_ptr())
        for part, place, result in zip(vectors, packed, made)
    ]
    places = (AmxGradientPart * len(parts))(*parts)
    own = AmxGradients(gradients.data_ptr(), rows, outputs, sums.data_ptr(), places, len(parts))
    MULTIPLY[dtype](ctypes.byref(own), torch.get_num_threads())
    return made, sums


def _filled(size: int) -> int:
    return size + -size % TOGETHER
