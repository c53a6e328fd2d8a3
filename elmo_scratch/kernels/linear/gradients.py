"""Gradients of weights."""

from typing import List, NamedTuple, Sequence

import torch

from elmo_scratch.kernels.linear import onednn
from elmo_scratch.kernels.linear.amx import can_multiply_gradients, multiply_gradients
from elmo_scratch.kernels.linear.onednn import matmul_into_pool
from elmo_scratch.kernels.memory import buffer_pool

ONES = 16
"""Columns whose product is the sum over rows: one would do, but odd widths are slow."""

OUTPUTS_OF_A_SUM = 2**16
"""Of so many outputs a gradient is made at once where it is added to others."""

OUTPUTS_AT_ONCE = 512
"""Of so many outputs a gradient is made at once where it is converted to a wider type."""


class WeightGradients(NamedTuple):
    """
    Gradients of all that goes into the same outputs.

    # Parameters

    weights : `List[torch.Tensor]`
        Each of shape `(outputs, inputs)`.
    bias : `torch.Tensor`
        Shape `(outputs,)`.
    """

    weights: List[torch.Tensor]
    bias: torch.Tensor


def weight_gradients(
    gradients: torch.Tensor, vectors: Sequence[torch.Tensor], dtype: torch.dtype
) -> WeightGradients:
    """
    # Parameters

    gradients : `torch.Tensor`
        Shape `(rows, outputs)`: those of the outputs, in the precision of products.
    vectors : `Sequence[torch.Tensor]`
        Each of shape `(rows, inputs)`: what was multiplied with one matrix of weights.
    dtype : `torch.dtype`
        The type of the weights.
    """
    rounded = [part.to(gradients.dtype) for part in vectors]
    if can_multiply_gradients(gradients, rounded, dtype):
        return WeightGradients(*multiply_gradients(gradients, rounded))
    if len(rounded) < 2:
        made = [_row_by_row(_product(gradients, part, dtype)) for part in rounded]
        return WeightGradients(made, gradients.sum(dim=0).to(dtype))
    # In one product: to read the gradients takes much of its time.
    ones = gradients.new_ones(len(gradients), ONES)
    together = torch.cat([*rounded, ones], dim=1)
    sizes = [part.size(1) for part in (*rounded, ones)]
    *made, sums = _product(gradients, together, dtype).split(sizes, dim=1)
    return WeightGradients([_empty_like(part).copy_(part) for part in made], sums[:, 0].clone())


def add_weight_gradient(
    total: torch.Tensor, gradients: torch.Tensor, vectors: torch.Tensor
) -> None:
    """
    # Parameters

    total : `torch.Tensor`
        Shape `(outputs, inputs)`, of the type of the weights: what the gradient is added to.
    gradients : `torch.Tensor`
        Shape `(rows, outputs)`: those of the outputs, in the precision of products.
    vectors : `torch.Tensor`
        Shape `(rows, inputs)`, of that type: what was multiplied with the weights.
    """
    if gradients.dtype == total.dtype and not onednn.can_multiply(gradients.t(), vectors):
        total.addmm_(gradients.t(), vectors)
        return
    for place, piece in zip(
        total.split(OUTPUTS_OF_A_SUM), gradients.split(OUTPUTS_OF_A_SUM, dim=1)
    ):
        if can_multiply_gradients(piece, [vectors], total.dtype):
            place += multiply_gradients(piece, [vectors])[0][0]
        else:
            place += _product(piece, vectors, total.dtype)


def _product(gradients: torch.Tensor, vectors: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The gradient of one matrix of weights."""
    if gradients.device.type != "cpu":
        return torch.mm(gradients.t(), vectors).to(dtype)
    if gradients.dtype == dtype:
        return matmul_into_pool(gradients.t(), vectors)
    result = buffer_pool.empty((gradients.size(1), vectors.size(1)), dtype)
    # Piece by piece, so that the rounded numbers never leave the processor's caches.
    pieces = gradients.t().split(OUTPUTS_AT_ONCE)
    for place, rows in zip(result.split(OUTPUTS_AT_ONCE), pieces):
        place.copy_(rows @ vectors)
    return result


def _row_by_row(made: torch.Tensor) -> torch.Tensor:
    """The same numbers, those of a row side by side."""
    return made if made.is_contiguous() else _empty_like(made).copy_(made)


def _empty_like(part: torch.Tensor) -> torch.Tensor:
    """Of any numbers, side by side."""
    if part.device.type != "cpu":
        return torch.empty(part.shape, dtype=part.dtype, device=part.device)
    return buffer_pool.empty(part.shape, part.dtype)
