"""The pieces of a batch that recorded steps read one after the other."""

from functools import lru_cache
from typing import NamedTuple, Optional, Tuple

import torch


class Piece(NamedTuple):
    """
    As many steps of a batch as are recorded, or the last ones.

    # Parameters

    part : `slice`
        Which of the positions of a `ReadingOrder` are read.
    places : `Optional[torch.Tensor]`
        Shape `(read,)`: where these lie among the recorded ones; `None` where they are all of them.
    num_recorded : `int`
        How many are recorded.
    before : `slice`
        Of the `ReadingOrder`, the positions of the step before; empty for the first piece.
    last : `torch.Tensor`
        Shape `(ended,)`: where the last positions of sentences that end here lie among the recorded
        ones. Those that end in a later piece come before them.
    """

    part: slice
    places: Optional[torch.Tensor]
    num_recorded: int
    before: slice
    last: torch.Tensor

    def laid(self, vectors: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(read, dim)`: of all positions of a `ReadingOrder`.

        # Returns

        `torch.Tensor`
            Shape `(recorded, dim)`: this piece's, in their places, and zeros elsewhere.
        """
        own = vectors[self.part]
        if self.places is None:
            return own
        return own.new_zeros(self.num_recorded, own.size(1)).index_copy_(0, self.places, own)

    def picked(self, recorded: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        recorded : `torch.Tensor`
            Shape `(recorded, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(read, dim)`: what this piece reads.
        """
        return recorded if self.places is None else recorded.index_select(0, self.places)


@lru_cache(maxsize=8)
def pieces_of(
    batch_sizes: Tuple[int, ...],
    num_steps: int,
    num_rows: int,
    device: torch.device,
    stream: int = 0,
) -> Tuple[Piece, ...]:
    """
    # Parameters

    batch_sizes : `Tuple[int, ...]`
        How many sentences are read at each step.
    num_steps, num_rows : `int`
        How many steps, and sentences at each, are recorded.
    device : `torch.device`
        Where the batch lies.
    stream : `int`, optional (default = `0`)
        Of the GPU, on which it is read.

    # Returns

    `Tuple[Piece, ...]`
        The same for all layers of a batch, so that the last ones are kept.
    """
    pieces = []
    start = 0
    for first in range(0, len(batch_sizes), num_steps):
        sizes = batch_sizes[first : first + num_steps]
        remaining = batch_sizes[first + num_steps] if first + num_steps < len(batch_sizes) else 0
        is_read = torch.arange(num_rows, device="cpu") < torch.tensor(
            sizes, device="cpu"
        ).unsqueeze(1)
        places = is_read.flatten().nonzero().squeeze(1)  # (read,)
        rows = torch.arange(remaining, sizes[0], device="cpu")
        last = (is_read.sum(dim=0)[rows] - 1) * num_rows + rows
        end = start + len(places)
        is_whole = len(places) == num_steps * num_rows
        pieces.append(
            Piece(
                slice(start, end),
                None if is_whole else places.to(device),
                num_steps * num_rows,
                slice(start - batch_sizes[first - 1] if first > 0 else 0, start),
                last.to(device),
            )
        )
        start = end
    return tuple(pieces)
