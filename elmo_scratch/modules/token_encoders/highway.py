"""Highway layers."""

import torch

from elmo_scratch.kernels.highway import highway_gate
from elmo_scratch.kernels.linear import Affine
from elmo_scratch.kernels.sigmoid import sigmoid_


class Highway(torch.nn.Module):
    """
    A gate `g` between what comes and a nonlinear function of it:

        g = σ(x C + c)
        y = g · relu(x T + t) + (1 - g) · x

    # Parameters

    dim : `int`
        The size of a vector.

    # Source

    Srivastava, Greff and Schmidhuber 2015, equation 3; weights named as in `bilm-tf`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = Affine(dim, dim)
        self.carry = Affine(dim, dim)
        # At first more is carried on than transformed.
        torch.nn.init.constant_(self.carry.bias, -2.0)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(rows, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(rows, dim)`.
        """
        dtype = self.carry.matmul_dtype_for(self.carry.weight)
        transformed, carried = self.transform(vectors, dtype), self.carry(vectors, dtype)
        if any(part.requires_grad for part in (vectors, transformed, carried)):
            return highway_gate(vectors, transformed, carried)
        transformed, carried = transformed.to(vectors.dtype), carried.to(vectors.dtype)
        return torch.lerp(vectors, torch.relu(transformed), sigmoid_(carried))
