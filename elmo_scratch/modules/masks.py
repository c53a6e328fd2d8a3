"""Masks of batches, in which the real tokens of a row come first."""

import torch


def sentence_lengths(mask: torch.Tensor) -> torch.Tensor:
    """
    # Parameters

    mask : `torch.BoolTensor`
        Shape `(batch, positions)`, or `(batch, tokens)`.

    # Returns

    `torch.Tensor`
        Shape `(batch,)`: how many are real in each row.

    # Raises

    ValueError
        If they don't come first.
    """
    lengths = mask.sum(dim=1)
    places = torch.arange(mask.size(1), device=mask.device)
    if not torch.equal(mask, places < lengths.unsqueeze(1)):
        raise ValueError("expected a mask in which the real tokens of a row come before padding")
    return lengths
