"""Masks, sentence boundaries, and the order in which LSTMs read a batch."""

from typing import List, NamedTuple

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


class PackedOrder(NamedTuple):
    """
    All first positions of a batch, then all second ones, and so on, sentences that are longer
    first: what is read at one step lies together, and a sentence that has ended takes no place.

    # Parameters

    batch_sizes : `List[int]`
        For each step, how many sentences are still being read.
    sorted_indices : `torch.Tensor`
        Shape `(batch,)`: the numbers of the sentences, longest first.
    unsorted_indices : `torch.Tensor`
        Shape `(batch,)`: the inverse of `sorted_indices`.
    left_to_right, right_to_left : `torch.Tensor`
        Shape `(packed,)`: where each position that is read lies in a batch whose rows are laid end
        to end, for a reader that starts at the beginning and one that starts at the end.
    """

    batch_sizes: List[int]
    sorted_indices: torch.Tensor
    unsorted_indices: torch.Tensor
    left_to_right: torch.Tensor
    right_to_left: torch.Tensor

    @classmethod
    def of(cls, mask: torch.Tensor) -> "PackedOrder":
        """
        # Parameters

        mask : `torch.BoolTensor`
            Shape `(batch, positions)`.

        # Raises

        ValueError
            If real positions don't come first in each row.
        """
        host_mask = mask.cpu()
        positions = host_mask.size(1)
        lengths = sentence_lengths(host_mask)  # (batch,)
        steps = torch.arange(positions, device="cpu")  # (positions,)
        lengths, rows = lengths.sort(descending=True, stable=True)
        step, rank = torch.where(steps.unsqueeze(1) < lengths)  # each (packed,)
        starts = rows[rank] * positions
        batch_sizes = (steps.unsqueeze(1) < lengths).sum(dim=1)
        return cls(
            batch_sizes[batch_sizes > 0].tolist(),
            rows.to(mask.device),
            rows.argsort().to(mask.device),
            (starts + step).to(mask.device),
            (starts + lengths[rank] - 1 - step).to(mask.device),
        )
