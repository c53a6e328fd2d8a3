"""How a batch is laid over recorded steps, whose number and sentences are fixed."""

from functools import lru_cache
from typing import NamedTuple, Optional, Tuple

import torch


class Grid(NamedTuple):
    """
    The steps and rows of as many recordings, one after the other, as a batch takes.

    # Parameters

    num_pieces : `int`
        How many recordings.
    num_places : `int`
        Steps times rows of each.
    places : `Optional[torch.Tensor]`
        Shape `(packed,)`: where the positions of a `ReadingOrder` lie, over all pieces; `None`
        where they take every place.
    last : `torch.Tensor`
        Shape `(sentences,)`: where the last position of each sentence lies, for those that have
        one, in the order of reading.
    """

    num_pieces: int
    num_places: int
    places: Optional[torch.Tensor]
    last: torch.Tensor

    @classmethod
    def of(
        cls, batch_sizes: Tuple[int, ...], num_steps: int, num_rows: int, device: torch.device
    ) -> "Grid":
        """
        # Parameters

        batch_sizes : `Tuple[int, ...]`
            How many sentences are read at each step.
        num_steps, num_rows : `int`
            How many steps, and sentences at each, are recorded.
        device : `torch.device`
            Where the batch lies.
        """
        num_pieces = -(-len(batch_sizes) // num_steps)
        sizes = torch.tensor(batch_sizes, device="cpu").unsqueeze(1)
        is_read = torch.arange(num_rows, device="cpu") < sizes  # (steps, rows)
        rows = torch.arange(batch_sizes[0], device="cpu")
        last = (is_read.sum(dim=0)[rows] - 1) * num_rows + rows
        is_whole = bool(is_read.all()) and len(batch_sizes) == num_pieces * num_steps
        places = None if is_whole else is_read.flatten().nonzero().squeeze(1).to(device)
        return cls(num_pieces, num_steps * num_rows, places, last.to(device))

    def laid(self, vectors: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(packed, dim)`: of all positions of a `ReadingOrder`.

        # Returns

        `torch.Tensor`
            Shape `(pieces, places, dim)`, with zeros where no position is.
        """
        if self.places is not None:
            padded = vectors.new_zeros(self.num_pieces * self.num_places, vectors.size(1))
            vectors = padded.index_copy_(0, self.places, vectors)
        return vectors.unflatten(0, (self.num_pieces, self.num_places))

    def picked(self, laid: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        laid : `torch.Tensor`
            Shape `(pieces, places, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(packed, dim)`: what lies where a position is.
        """
        flat = laid.flatten(0, 1)
        return flat if self.places is None else flat.index_select(0, self.places)

    def picked_last(self, laid: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        laid : `torch.Tensor`
            Shape `(pieces, places, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(sentences, dim)`: what lies at their last positions.
        """
        return laid.flatten(0, 1).index_select(0, self.last)


@lru_cache(maxsize=8)
def grid_of(
    batch_sizes: Tuple[int, ...],
    num_steps: int,
    num_rows: int,
    device: torch.device,
    stream: int = 0,
) -> Grid:
    """
    As `Grid.of`, for one stream of the GPU: all layers of a batch share a grid, so that the last
    ones are kept.
    """
    return Grid.of(batch_sizes, num_steps, num_rows, device)
