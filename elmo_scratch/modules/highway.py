"""Highway layers."""

import torch

from elmo_scratch.modules.products import Affine
from elmo_scratch.modules.sigmoid import sigmoid_


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
        carried = self.carry(vectors)
        gate = torch.sigmoid(carried) if carried.requires_grad else sigmoid_(carried)
        return torch.lerp(vectors, torch.relu(self.transform(vectors)), gate)
