"""Masks, sentence boundaries, and the order in which LSTMs read a batch."""

from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.kernels import LstmState, step_groups


def sentence_lengths(mask: torch.Tensor) -> torch.Tensor:
    """
    The number of real positions in each row of a mask, shape `(batch, positions)` → `(batch,)`.
    Raises a `ValueError` unless they come first in each row.
    """
    lengths = mask.sum(dim=1)
    places = torch.arange(mask.size(1), device=mask.device)
    if not torch.equal(mask, places < lengths.unsqueeze(1)):
        raise ValueError("expected a mask in which the real tokens of a row come before padding")
    return lengths


class Bounded(NamedTuple):
    """
    Ids, or vectors, of shape `(batch, positions, ...)`, with sentence boundaries; and their mask.
    """

    ids: torch.Tensor
    mask: torch.Tensor


def add_boundaries(
    ids: torch.Tensor, mask: torch.Tensor, begin: torch.Tensor, end: torch.Tensor
) -> Bounded:
    """
    Puts `begin` before and `end` after each sentence. An empty sentence becomes the two marks.

    `ids` have the shape `(batch, tokens)` or `(batch, tokens, characters)`, or are vectors of shape
    `(batch, tokens, dim)`; a mark has the shape of one of them. The result has the shape
    `(batch, tokens + 2, ...)` and is 0 where its mask is `False`. Raises a `ValueError` unless real
    tokens come first in each row.
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
    Drops the first and the last position of each row: `(..., positions, width)` →
    `(..., tokens, width)`. In rows shorter than the longest the end mark stays behind, where the
    mask of the tokens hides it.
    """
    return positions[..., 1:-1, :]


class PackedVectors(NamedTuple):
    """
    Vectors of the positions of a batch in a `PackedOrder`, as PyTorch's `PackedSequence` has them.

    # Parameters

    vectors : `torch.Tensor`
        Shape `(packed, dim)`.
    batch_sizes : `Sequence[int]`
        For each step, how many sentences are read.
    rows : `torch.Tensor`, optional (default = `None`)
        Shape `(batch,)`: the row of its batch that each sentence, in the order of reading, is from.
        `None` for rows in the order of reading.
    """

    vectors: torch.Tensor
    batch_sizes: Sequence[int]
    rows: Optional[torch.Tensor] = None


class PackedOrder(NamedTuple):
    """
    The order in which LSTMs read a batch: all first positions, then all second ones, and so on,
    longer sentences first. The positions of one step are contiguous, and there is no padding.

    # Parameters

    batch_sizes : `List[int]`
        For each step, how many sentences are still being read.
    sorted_indices : `torch.Tensor`
        Shape `(batch,)`: the numbers of the sentences, longest first.
    unsorted_indices : `torch.Tensor`
        Shape `(batch,)`: the inverse of `sorted_indices`.
    left_to_right, right_to_left : `torch.Tensor`
        Shape `(packed,)`: the index of each position in the batch flattened to `batch * positions`,
        for a reader that starts at the beginning and one that starts at the end.
    """

    batch_sizes: List[int]
    sorted_indices: torch.Tensor
    unsorted_indices: torch.Tensor
    left_to_right: torch.Tensor
    right_to_left: torch.Tensor

    @classmethod
    def of(cls, mask: torch.Tensor) -> "PackedOrder":
        """
        The order for a mask of shape `(batch, positions)`. Raises a `ValueError` unless real
        positions come first in each row.
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

    def pieces(self, positions_at_once: Optional[int]) -> Iterator[Tuple[slice, List[int]]]:
        """
        Yields consecutive steps: their part of the packed positions, and their batch sizes. A piece
        has at most `positions_at_once` positions, or one step; with `None` it is the whole.
        """
        if positions_at_once is None:
            yield slice(None), self.batch_sizes
            return
        first = 0
        for group in step_groups(self.batch_sizes, positions_at_once):
            last = first + sum(group)
            yield slice(first, last), group
            first = last

    def unsorted(self, states: Sequence[LstmState]) -> LstmState:
        """
        Joins the states of groups of layers, each of shape `(layers, batch, ...)`, and puts the
        sentences back in the order of their batch.
        """
        hidden, cell = map(torch.cat, zip(*states))
        return LstmState(
            hidden.index_select(1, self.unsorted_indices),
            cell.index_select(1, self.unsorted_indices),
        )
