"""A linear layer, fast with frozen weights, in a chosen precision."""

from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.frozen_cache import FrozenWeightCache
from elmo_scratch.kernels.library import is_plain
from elmo_scratch.kernels.linear.gradients import weight_gradients
from elmo_scratch.kernels.linear.onednn import matmul_into_pool
from elmo_scratch.kernels.linear.packed import PackedLinear
from elmo_scratch.kernels.precision import MixedPrecision


class TrainedLinear(torch.autograd.Function):
    """
    `x Wᵀ + b`, with numbers rounded first if the precision of products is not that of the weights.
    Large results, including weight gradients, are in recycled memory.
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
        Shapes `(rows, input_dim)`, `(output_dim, input_dim)` and `(output_dim,)` →
        `(rows, output_dim)`. `vectors` and the result are of the type `dtype`, the precision of
        products.
        """
        ctx.save_for_backward(vectors, weight)
        if dtype == weight.dtype:
            return matmul_into_pool(vectors, weight.t(), bias)
        return PackedLinear(weight, dtype, num_uses=1)(vectors, bias)

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
    """The gradient of the vectors, shape `(rows, input_dim)`, of the type of `gradients`."""
    if gradients.dtype == weight.dtype:
        return matmul_into_pool(gradients, weight)
    return PackedLinear(weight.t(), gradients.dtype, num_uses=1)(gradients)


class Linear(MixedPrecision):
    """
    `x Wᵀ + b`, like `torch.nn.Linear`, but fast with frozen weights and able to multiply in less
    precision.

    # Parameters

    input_dim, output_dim : `int`
        Sizes of the vectors.
    """

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(output_dim, input_dim))
        self.bias = torch.nn.Parameter(torch.zeros(output_dim))
        torch.nn.init.xavier_uniform_(self.weight)
        self._frozen = FrozenWeightCache[PackedLinear]()

    def forward(
        self, vectors: torch.Tensor, output_dtype: Optional[torch.dtype] = None
    ) -> torch.Tensor:
        """
        Shape `(rows, input_dim)` → `(rows, output_dim)`, of the type `output_dtype`, or of the type
        of `vectors` by default.
        """
        dtype = self.matmul_dtype_for(self.weight)
        graph = (vectors, self.weight, self.bias)
        is_trained = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in graph)
        if is_trained and self._is_trained_by_us(dtype) and is_plain(*graph, on="cpu"):
            products = TrainedLinear.apply(vectors.to(dtype), self.weight, self.bias, dtype)
        elif is_trained or self.weight.device.type != "cpu":
            # Rounding weights on a GPU is faster than checking whether they have changed.
            products = torch.nn.functional.linear(
                vectors.to(dtype), self.weight.to(dtype), self.bias.to(dtype)
            )
        else:
            product = self._frozen.of(
                [self.weight], dtype, lambda: PackedLinear(self.weight, dtype)
            )
            products = product(vectors, self.bias)
        return products.to(output_dtype or vectors.dtype)

    def forget_product(self) -> None:
        """Drops the packed copy of frozen weights."""
        self._frozen.forget()

    def _apply(self, *arguments: Any, **settings: Any) -> "Linear":
        # The copy would keep the weight's old memory in use.
        self.forget_product()
        return super()._apply(*arguments, **settings)

    def _is_trained_by_us(self, dtype: torch.dtype) -> bool:
        """
        Whether products of this precision use `TrainedLinear`: if they are rounded, or in float32.
        In other types PyTorch's product is used, which can be differentiated twice.
        """
        if dtype != self.weight.dtype:
            return True
        return dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
