"""The base class of layer mixes."""

from abc import ABC, abstractmethod

import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError


def normalize_layers(layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Shifts and scales each layer to mean 0 and variance 1 over all real positions of the batch, as
    `weight_layers` of `bilm-tf` does (Peters et al. 2018, section 3.2). A sentence's vectors then
    depend on the other sentences of its batch.

    `layers` and the result have the shape `(layers, batch, positions, width)`; the result is zero
    where `mask`, shape `(batch, positions)`, is `False`.
    """
    real = mask.unsqueeze(-1)  # (batch, positions, 1)
    count = (mask.sum() * layers.size(-1)).clamp(min=1)
    # The sums and `TINY` are out of the range of half precision.
    wide = layers if layers.dtype.itemsize > 2 else layers.float()
    wide = wide.masked_fill(~real, 0.0)
    mean = wide.sum(dim=(1, 2, 3), keepdim=True) / count  # (layers, 1, 1, 1)
    centred = (wide - mean).masked_fill(~real, 0.0)
    variance = centred.square().sum(dim=(1, 2, 3), keepdim=True) / count
    return (centred / torch.sqrt(variance + TINY)).to(layers.dtype)


TINY = 1e-13
"""Prevents a division by zero for a layer of equal numbers; AllenNLP's value."""


class LayerMix(torch.nn.Module, Registrable, ABC):
    """
    Combines the layers of a biLM into one vector a token. Abstract.

    # Parameters

    num_layers : `int`
        How many layers `forward` gets, including the token layer.
    do_layer_norm : `bool`, optional (default = `False`)
        Normalise each layer before they are combined (see `normalize_layers`). A text's vectors
        then depend on the other texts of its batch.

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
            Shape `(batch, tokens, width)`; undefined where `mask` is `False`.

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
        Combines layers, after any normalisation: `(layers, batch, tokens, width)`, with a mask of
        shape `(batch, tokens)`, → `(batch, tokens, width)`.
        """

    @abstractmethod
    def shares(self) -> torch.Tensor:
        """How much of the result each layer makes up: shape `(layers,)`, sums to one."""


def weighted_sum(weights: torch.Tensor, layers: torch.Tensor) -> torch.Tensor:
    """Shapes `(layers,)` and `(layers, batch, tokens, width)` → `(batch, tokens, width)`."""
    # A single product would first copy layers whose sentence boundaries were removed.
    (weight, layer), *others = zip(weights.unbind(), layers.unbind())
    total = weight * layer
    for weight, layer in others:
        total += weight * layer
    return total
