"""What every mix promises."""

from abc import ABC, abstractmethod

import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes.layer_norm import normalize_layers


class LayerMix(torch.nn.Module, Registrable, ABC):
    """
    Combines the layers of a biLM into one vector a token. Abstract.

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    do_layer_norm : `bool`, optional (default = `False`)
        Bring the layers to one scale before they are combined. A text's vectors then depend on the
        other texts of its batch.

    # Source

    Peters et al. 2018, section 3.2.
    """

    default_implementation = "trainable"

    def __init__(self, num_layers: int, *, do_layer_norm: bool = False) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.do_layer_norm = do_layer_norm

    def forward(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        layers : `torch.Tensor`
            Shape `(layers, batch, tokens, width)`.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, width)`; where `mask` is `False` it means nothing.

        # Raises

        ConfigurationError
            If there are not as many layers as the mix was made for.
        """
        if len(layers) != self.num_layers:
            raise ConfigurationError(
                f"expected {self.num_layers} layers to mix, the token layer included, but got "
                f"{len(layers)}"
            )
        if self.do_layer_norm:
            layers = normalize_layers(layers, mask)
        return self.combine(layers, mask)

    @abstractmethod
    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        `forward`, after the layers were normalised.

        # Parameters

        layers : `torch.Tensor`
            Shape `(layers, batch, tokens, width)`.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`.

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
    # As one product, layers without their sentence boundaries would first be copied.
    (weight, layer), *others = zip(weights.unbind(), layers.unbind())
    total = weight * layer
    for weight, layer in others:
        total += weight * layer
    return total
