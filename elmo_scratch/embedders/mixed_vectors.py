"""From layers to what an embedder gives of each token."""

from typing import Optional

import torch

from elmo_scratch.modules.mixes import LayerMix


def mixed_vectors(
    layers: torch.Tensor,
    mask: torch.Tensor,
    mix: LayerMix,
    output_mix: Optional[LayerMix],
    dropout: torch.nn.Dropout,
) -> torch.Tensor:
    """
    # Parameters

    layers : `torch.Tensor`
        Shape `(layers, batch, tokens, width)`.
    mask : `torch.BoolTensor`
        Shape `(batch, tokens)`.
    mix : `LayerMix`
        Makes the vector that enters a model at its input.
    output_mix : `Optional[LayerMix]`
        Makes a second one, for `elmo_scratch_output`, which lies behind the first.
    dropout : `torch.nn.Dropout`
        For each of them.

    # Returns

    `torch.Tensor`
        Shape `(batch, tokens, width)`, or `(batch, tokens, 2 * width)` with `output_mix`, zero
        where `mask` is `False`.

    # Source

    Peters et al. 2018, section 3.3.
    """
    mixes = [mix] if output_mix is None else [mix, output_mix]
    together = torch.cat([dropout(one(layers, mask)) for one in mixes], dim=-1)
    return together.masked_fill(~mask.unsqueeze(-1), 0.0)
