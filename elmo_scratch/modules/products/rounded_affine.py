"""A trained layer of weights and a bias whose products are rounded."""

from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.modules.products.recycled_memory import RECYCLED
from elmo_scratch.modules.products.weight_gradient import weight_gradient


class RoundedAffine(torch.autograd.Function):
    """`x Wᵀ + b` of numbers that are rounded first, on a processor."""

    @staticmethod
    def forward(
        ctx: Any,
        vectors: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(rows, input_dim)`, of the type `dtype`.
        weight : `torch.Tensor`
            Shape `(output_dim, input_dim)`.
        bias : `torch.Tensor`
            Shape `(output_dim,)`.
        dtype : `torch.dtype`
            The precision of products.

        # Returns

        `torch.Tensor`
            Shape `(rows, output_dim)`, of the type `dtype`.
        """
        rounded = RECYCLED.empty(weight.shape, dtype).copy_(weight)
        ctx.save_for_backward(vectors, rounded)
        ctx.dtype = weight.dtype
        return torch.nn.functional.linear(vectors, rounded, bias.to(dtype))

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradients: torch.Tensor
    ) -> Tuple[Optional[torch.Tensor], Optional[torch.Tensor], Optional[torch.Tensor], None]:
        """The gradients of vectors, weights and bias."""
        vectors, rounded = ctx.saved_tensors
        needed = ctx.needs_input_grad
        return (
            gradients @ rounded if needed[0] else None,
            weight_gradient(gradients, vectors, ctx.dtype) if needed[1] else None,
            gradients.sum(dim=0).to(ctx.dtype) if needed[2] else None,
            None,
        )
