"""What every mix promises."""

from abc import ABC, abstractmethod

import torch
from allennlp.common import Registrable


class LayerMix(torch.nn.Module, Registrable, ABC):
    """
    Combines the layers of a biLM into one vector a token. Abstract.

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    """

    default_implementation = "trainable"

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.num_layers = num_layers

    @abstractmethod
    def forward(self, layers: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        layers : `torch.Tensor`
            Shape `(layers, batch, tokens, width)`.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, width)`.
        """

    @abstractmethod
    def shares(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(layers,)`, sums to one: how much of the result each layer makes up.
        """


def weighted_sum(weights: torch.Tensor, layers: torch.Tensor) -> torch.Tensor:
    """
    # Parameters

    weights : `torch.Tensor`
        Shape `(layers,)`.
    layers : `torch.Tensor`
        Shape `(layers, batch, tokens, width)`.

    # Returns

    `torch.Tensor`
        Shape `(batch, tokens, width)`.
    """
    return torch.einsum("l,lbtw->btw", weights, layers)
