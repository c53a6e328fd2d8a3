"""The two orders in which a sentence is read."""

import torch


def reverse_sentences(vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Turns each sentence around within its own length; padding stays where it is. Applied twice, it
    gives back what came.

    # Parameters

    vectors : `torch.Tensor`
        Shape `(batch, positions, dim)`.
    mask : `torch.BoolTensor`
        Shape `(batch, positions)`; real positions come first in each row.

    # Returns

    `torch.Tensor`
        Shape `(batch, positions, dim)`.
    """
    places = torch.arange(mask.size(1), device=mask.device)  # (positions,)
    mirrored = mask.sum(dim=1, keepdim=True) - 1 - places  # (batch, positions)
    order = torch.where(mask, mirrored, places)
    return vectors.gather(1, order.unsqueeze(-1).expand_as(vectors))
