"""A layer of weights and a bias."""

from typing import Any, Optional

import torch

from elmo_scratch.kernels.frozen_products import FrozenProducts
from elmo_scratch.kernels.linear.packed import WeightProduct
from elmo_scratch.kernels.linear.trained_affine import TrainedAffine
from elmo_scratch.kernels.native_library import reaches
from elmo_scratch.kernels.precision import MixedPrecision


class Affine(MixedPrecision):
    """
    `x Wᵀ + b`, as `torch.nn.Linear`, but fast with frozen weights and able to multiply in less
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
        self._frozen = FrozenProducts[WeightProduct]()

    def forward(
        self, vectors: torch.Tensor, output_dtype: Optional[torch.dtype] = None
    ) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(rows, input_dim)`.
        output_dtype : `torch.dtype`, optional (default = `None`)
            The type of the result; `None` stands for that of `vectors`.

        # Returns

        `torch.Tensor`
            Shape `(rows, output_dim)`.
        """
        dtype = self.matmul_dtype_for(self.weight)
        graph = (vectors, self.weight, self.bias)
        is_trained = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in graph)
        if is_trained and self._is_trained_by_us(dtype) and reaches(*graph):
            products = TrainedAffine.apply(vectors.to(dtype), self.weight, self.bias, dtype)
        elif is_trained or self.weight.device.type != "cpu":
            # A GPU rounds weights in less time than it takes to ask it whether they have changed.
            products = torch.nn.functional.linear(
                vectors.to(dtype), self.weight.to(dtype), self.bias.to(dtype)
            )
        else:
            product = self._frozen.of(
                [self.weight], dtype, lambda: WeightProduct(self.weight, dtype)
            )
            products = product(vectors, self.bias)
        return products.to(output_dtype or vectors.dtype)

    def forget_product(self) -> None:
        """Lets go of the copy of frozen weights that products are made with."""
        self._frozen.forget()

    def _apply(self, *arguments: Any, **settings: Any) -> "Affine":
        # It would hold on to the memory that the weight leaves.
        self.forget_product()
        return super()._apply(*arguments, **settings)

    def _is_trained_by_us(self, dtype: torch.dtype) -> bool:
        """
        Whether products of this precision have a backward pass of their own: where they are rounded
        here, and in float32. PyTorch's, in other types, has gradients of gradients too.
        """
        if dtype != self.weight.dtype:
            return True
        return dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
