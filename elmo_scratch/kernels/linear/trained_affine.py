"""A trained layer of weights and a bias, on a processor."""

from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.linear.gradients import weight_gradients
from elmo_scratch.kernels.linear.packed import WeightProduct
from elmo_scratch.kernels.linear.recycled_product import recycled_product


class TrainedAffine(torch.autograd.Function):
    """
    `x Wᵀ + b` of numbers that are rounded first, if the precision of products is not that of the
    weights. What is large, among it the gradients of weights, lies in recycled memory.
    """

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
        ctx.save_for_backward(vectors, weight)
        if dtype == weight.dtype:
            return recycled_product(vectors, weight.t(), bias)
        return WeightProduct(weight, dtype, num_uses=1)(vectors, bias)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradients: torch.Tensor
    ) -> Tuple[Optional[torch.Tensor], Optional[torch.Tensor], Optional[torch.Tensor], None]:
        """The gradients of vectors, weights and bias."""
        vectors, weight = ctx.saved_tensors
        needed = ctx.needs_input_grad
        made = weight_gradients(gradients, [vectors] if needed[1] else [], weight.dtype)
        return (
            _of_vectors(gradients, weight) if needed[0] else None,
            made.weights[0] if needed[1] else None,
            made.bias.to(weight.dtype) if needed[2] else None,
            None,
        )


def _of_vectors(gradients: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Shape `(rows, input_dim)`, of the type of `gradients`."""
    if gradients.dtype == weight.dtype:
        return recycled_product(gradients, weight)
    return WeightProduct(weight.t(), gradients.dtype, num_uses=1)(gradients)
