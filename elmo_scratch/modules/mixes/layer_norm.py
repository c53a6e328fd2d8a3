"""Layers brought to one scale before they are mixed."""

import torch


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
