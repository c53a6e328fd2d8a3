"""The gradients of matrices of weights, large products that sum over the rows of a batch."""

import ctypes
from typing import List, NamedTuple, Sequence

import torch

from elmo_scratch.kernels import onednn
from elmo_scratch.kernels.library import (
    COUNT,
    INSTRUCTIONS,
    LIBRARY,
    GradientPart,
    GradientProducts,
    Instructions,
    functions,
    is_plain,
)
from elmo_scratch.kernels.memory import buffer_pool
from elmo_scratch.kernels.onednn import matmul_into_pool

ONES = 16
"""Columns of ones, whose product is the sum over rows. One would do, but odd widths are slow."""

OUTPUTS_OF_A_SUM = 2**16
"""A gradient that is added to another is computed for so many outputs at once."""

OUTPUTS_AT_ONCE = 512
"""A gradient that is converted to a wider type is computed for so many outputs at once."""


class WeightGradients(NamedTuple):
    """
    The gradients of `weights`, each of shape `(outputs, inputs)`, and of their bias, `(outputs,)`.
    """

    weights: List[torch.Tensor]
    bias: torch.Tensor


def weight_gradients(
    gradients: torch.Tensor, vectors: Sequence[torch.Tensor], dtype: torch.dtype
) -> WeightGradients:
    """
    The gradients of matrices of type `dtype`, each multiplied with one of `vectors`, shape
    `(rows, inputs)`, to make the same outputs. `gradients` are those outputs' gradients, shape
    `(rows, outputs)`, in the precision of products.
    """
    rounded = [part.to(gradients.dtype) for part in vectors]
    if can_multiply_gradients(gradients, rounded, dtype):
        return multiply_gradients(gradients, rounded)
    if len(rounded) < 2:
        made = [_row_by_row(_product(gradients, part, dtype)) for part in rounded]
        return WeightGradients(made, gradients.sum(dim=0).to(dtype))
    # As one product, because reading the gradients takes much of its time.
    ones = gradients.new_ones(len(gradients), ONES)
    together = torch.cat([*rounded, ones], dim=1)
    sizes = [part.size(1) for part in (*rounded, ones)]
    *made, sums = _product(gradients, together, dtype).split(sizes, dim=1)
    return WeightGradients([_empty_like(part).copy_(part) for part in made], sums[:, 0].clone())


def add_weight_gradient(
    total: torch.Tensor, gradients: torch.Tensor, vectors: torch.Tensor
) -> None:
    """
    Adds the gradient of a matrix of weights to `total`, shape `(outputs, inputs)`, of the weights'
    type. `gradients`, shape `(rows, outputs)`, and `vectors`, shape `(rows, inputs)`, are in the
    precision of products.
    """
    is_compiled = can_multiply_gradients(gradients, [vectors], total.dtype)
    is_by_pytorch = not (is_compiled or onednn.can_multiply(gradients.t(), vectors))
    if gradients.dtype == total.dtype and is_by_pytorch:
        total.addmm_(gradients.t(), vectors)
        return
    for place, piece in zip(
        total.split(OUTPUTS_OF_A_SUM), gradients.split(OUTPUTS_OF_A_SUM, dim=1)
    ):
        if can_multiply_gradients(piece, [vectors], total.dtype):
            place += multiply_gradients(piece, [vectors]).weights[0]
        else:
            place += _product(piece, vectors, total.dtype)


def _product(gradients: torch.Tensor, vectors: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The gradient of one matrix of weights."""
    if gradients.device.type != "cpu":
        return torch.mm(gradients.t(), vectors).to(dtype)
    if gradients.dtype == dtype:
        return matmul_into_pool(gradients.t(), vectors)
    result = buffer_pool.empty((gradients.size(1), vectors.size(1)), dtype)
    # By pieces, so that the rounded numbers stay in the CPU's caches.
    pieces = gradients.t().split(OUTPUTS_AT_ONCE)
    for place, rows in zip(result.split(OUTPUTS_AT_ONCE), pieces):
        place.copy_(rows @ vectors)
    return result


def _row_by_row(made: torch.Tensor) -> torch.Tensor:
    """The same matrix, contiguous."""
    return made if made.is_contiguous() else _empty_like(made).copy_(made)


def _empty_like(part: torch.Tensor) -> torch.Tensor:
    """An uninitialised contiguous tensor."""
    if part.device.type != "cpu":
        return torch.empty(part.shape, dtype=part.dtype, device=part.device)
    return buffer_pool.empty(part.shape, part.dtype)


_LEVELS = {torch.float32: Instructions.AVX2, torch.bfloat16: Instructions.TILES}
"""
The instruction set whose compiled code multiplies gradients, by the precision of products.
Elsewhere PyTorch or oneDNN multiplies them. With AVX-512 compiled code and oneDNN have not been
compared.
"""

MULTIPLY_GRADIENTS = functions(
    LIBRARY,
    "multiply_gradients",
    [dtype for dtype, instructions in _LEVELS.items() if INSTRUCTIONS == instructions],
    [ctypes.POINTER(GradientProducts), COUNT],
)

TOGETHER = 32
"""
The inputs and the rows that are copied for products are padded to multiples of this. AMX needs both
paddings; with AVX2 inputs are padded to multiples of 16, and rows not at all.
"""


def can_multiply_gradients(
    gradients: torch.Tensor, vectors: Sequence[torch.Tensor], dtype: torch.dtype
) -> bool:
    """Whether there is compiled code for `multiply_gradients` with weights of type `dtype`."""
    return (
        gradients.dtype in MULTIPLY_GRADIENTS
        and dtype == torch.float32
        and gradients.dim() == 2
        and gradients.numel() > 0
        and all(part.dim() == 2 and len(part) == len(gradients) for part in vectors)
        and all(part.dtype == gradients.dtype for part in vectors)
        and is_plain(gradients, *vectors, on="cpu")
    )


def multiply_gradients(gradients: torch.Tensor, vectors: Sequence[torch.Tensor]) -> WeightGradients:
    """
    As `weight_gradients` for weights in float32, by compiled code, for what it
    `can_multiply_gradients`. Nothing is rounded on the way. A number doesn't depend on the number
    of threads.
    """
    rows, outputs = gradients.shape
    dtype, gradients = gradients.dtype, gradients.contiguous()
    sums = torch.empty(outputs, dtype=torch.float32, device="cpu")
    vectors = [part.contiguous() for part in vectors]
    packed = [
        buffer_pool.empty((_padded_size(part.size(1)), _padded_size(rows)), dtype)
        for part in vectors
    ]
    made = [buffer_pool.empty((outputs, part.size(1)), torch.float32) for part in vectors]
    parts = [
        GradientPart(part.data_ptr(), part.size(1), place.data_ptr(), result.data_ptr())
        for part, place, result in zip(vectors, packed, made)
    ]
    places = (GradientPart * len(parts))(*parts)
    own = GradientProducts(gradients.data_ptr(), rows, outputs, sums.data_ptr(), places, len(parts))
    MULTIPLY_GRADIENTS[dtype](ctypes.byref(own), torch.get_num_threads())
    return WeightGradients(made, sums)


def _padded_size(size: int) -> int:
    return size + -size % TOGETHER
