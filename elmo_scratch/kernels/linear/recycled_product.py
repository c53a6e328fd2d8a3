"""Products of training, whose large results lie in memory that was in use before."""

from typing import Optional

import torch

from elmo_scratch.kernels.linear import float32_product
from elmo_scratch.kernels.recycled_memory import RECYCLED


def recycled_product(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """
    # Parameters

    left : `torch.Tensor`
        Shape `(rows, inputs)`, on a processor, without a gradient.
    right : `torch.Tensor`
        Shape `(inputs, columns)`, of that type.
    summand : `torch.Tensor`, optional (default = `None`)
        Of that type, and of a shape that can be added to the product.

    # Returns

    `torch.Tensor`
        Shape `(rows, columns)`: the product and what is added to it. The numbers of a column may
        lie side by side, if those of `left` do.
    """
    if float32_product.can_multiply(left, right, summand):
        return float32_product.multiply(left, right, summand)
    result = RECYCLED.empty((left.size(0), right.size(1)), left.dtype)
    if summand is None:
        return torch.mm(left, right, out=result)
    return torch.addmm(summand, left, right, out=result)
