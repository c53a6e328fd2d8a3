"""The order in which the positions of a batch are read."""

from typing import List, NamedTuple

import torch

from elmo_scratch.modules.masks import sentence_lengths


class ReadingOrder(NamedTuple):
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
    def of(cls, mask: torch.Tensor) -> "ReadingOrder":
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
