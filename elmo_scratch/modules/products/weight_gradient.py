"""The gradient of a matrix of weights."""

import torch

from elmo_scratch.modules.products.recycled_memory import RECYCLED

ROWS_OF_A_PIECE = 512
"""Rows that are multiplied together where the product is converted to a wider type."""


def weight_gradient(
    gradients: torch.Tensor, vectors: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """
    # Parameters

    gradients : `torch.Tensor`
        Shape `(rows, outputs)`: those of what the weights made.
    vectors : `torch.Tensor`
        Shape `(rows, inputs)`: what they made it of, of the same type.
    dtype : `torch.dtype`
        The type of the weights.

    # Returns

    `torch.Tensor`
        Shape `(outputs, inputs)`, of the type `dtype`, each number rounded to the factors'
        precision.
    """
    shape = (gradients.size(1), vectors.size(1))
    if gradients.device.type == "cpu":
        result = RECYCLED.empty(shape, dtype)
    else:
        result = gradients.new_empty(shape, dtype=dtype)
    if gradients.dtype == dtype:
        return torch.mm(gradients.t(), vectors, out=result)
    # Piece by piece, so that the rounded numbers never leave the processor's caches.
    for place, rows in zip(result.split(ROWS_OF_A_PIECE), gradients.t().split(ROWS_OF_A_PIECE)):
        place.copy_(rows @ vectors)
    return result
