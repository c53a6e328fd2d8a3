"""Sentence boundaries: the begin mark before and the end mark after each sentence of a batch."""

from typing import NamedTuple

import torch

from elmo_scratch.modules.masks import sentence_lengths


class Bounded(NamedTuple):
    """
    Ids with sentence boundaries.

    # Parameters

    ids : `torch.Tensor`
        Shape `(batch, positions)`, `(batch, positions, characters)`, or, of vectors in the place of
        ids, `(batch, positions, dim)`.
    mask : `torch.BoolTensor`
        Shape `(batch, positions)`.
    """

    ids: torch.Tensor
    mask: torch.Tensor


def add_boundaries(
    ids: torch.Tensor, mask: torch.Tensor, begin: torch.Tensor, end: torch.Tensor
) -> Bounded:
    """
    Puts `begin` before and `end` after each sentence. An empty sentence becomes the two marks.

    # Parameters

    ids : `torch.Tensor`
        Shape `(batch, tokens)`, `(batch, tokens, characters)`, or, of vectors in the place of ids,
        `(batch, tokens, dim)`.
    mask : `torch.BoolTensor`
        Shape `(batch, tokens)`; real tokens come first in each row.
    begin, end : `torch.Tensor`
        One mark: shape `()`, `(characters,)` or `(dim,)`.

    # Returns

    `Bounded`
        Of shape `(batch, tokens + 2, ...)`, 0 where `mask` is `False`.

    # Raises

    ValueError
        If real tokens don't come first in each row.
    """
    batch, tokens = mask.shape
    lengths = sentence_lengths(mask)  # (batch,)
    bounded = ids.new_zeros(batch, tokens + 2, *ids.shape[2:])
    bounded[:, 1:-1] = ids
    places = torch.arange(tokens + 2, device=ids.device)  # (positions,)
    bounded[places > lengths.unsqueeze(1)] = 0
    bounded[:, 0] = begin
    bounded[torch.arange(batch, device=ids.device), lengths + 1] = end.to(ids.dtype)
    return Bounded(bounded, places < lengths.unsqueeze(1) + 2)


def remove_boundaries(positions: torch.Tensor) -> torch.Tensor:
    """
    Drops the begin mark and the last position of every row: what is left lies where the tokens lay.

    The end mark of a sentence shorter than the longest stays behind, at a place that the mask of
    the tokens hides.

    # Parameters

    positions : `torch.Tensor`
        Shape `(..., positions, width)`.

    # Returns

    `torch.Tensor`
        Shape `(..., tokens, width)`.
    """
    return positions[..., 1:-1, :]
