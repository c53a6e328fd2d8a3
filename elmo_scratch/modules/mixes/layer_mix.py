"""The base class of layer mixes."""

from abc import ABC, abstractmethod

import torch
from allennlp.common import Registrable
from allennlp.common.checks import ConfigurationError


def normalize_layers(layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Shifts and scales each layer so that its numbers, over all real positions of the batch, have a
    mean of zero and a variance of one.

    A sentence's vectors so depend on the other sentences of its batch.

    # Parameters

    layers : `torch.Tensor`
        Shape `(layers, batch, positions, width)`.
    mask : `torch.BoolTensor`
        Shape `(batch, positions)`.

    # Returns

    `torch.Tensor`
        Shape `(layers, batch, positions, width)`, zero where `mask` is `False`; of the type of
        `layers`.

    # Source

    `weight_layers` of `bilm-tf`, Peters et al. 2018, section 3.2.
    """
    real = mask.unsqueeze(-1)  # (batch, positions, 1)
    count = (mask.sum() * layers.size(-1)).clamp(min=1)
    # The sums, and `TINY`, are out of the range of half precision.
    wide = layers if layers.dtype.itemsize > 2 else layers.float()
    wide = wide.masked_fill(~real, 0.0)
    mean = wide.sum(dim=(1, 2, 3), keepdim=True) / count  # (layers, 1, 1, 1)
    centred = (wide - mean).masked_fill(~real, 0.0)
    variance = centred.square().sum(dim=(1, 2, 3), keepdim=True) / count
    return (centred / torch.sqrt(variance + TINY)).to(layers.dtype)


TINY = 1e-13
"""Keeps a layer of equal numbers from a division by zero; AllenNLP's value."""


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
