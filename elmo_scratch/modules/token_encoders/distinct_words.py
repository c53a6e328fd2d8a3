"""The different words of a batch, each once."""

from typing import NamedTuple

import torch


class DistinctWords(NamedTuple):
    """
    # Parameters

    ids : `torch.Tensor`
        Shape `(distinct, characters)`.
    places : `torch.Tensor`
        Shape `(rows,)`: for each word of the batch its row in `ids`.
    """

    ids: torch.Tensor
    places: torch.Tensor

    @classmethod
    def of(cls, ids: torch.Tensor) -> "DistinctWords":
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(rows, characters)`.
        """
        # Sorting one number a word is many times faster than sorting words. Two words that get the
        # same number by chance are noticed.
        codes, places = torch.unique(_codes(ids), return_inverse=True)
        somewhere = torch.empty_like(codes)
        somewhere[places] = torch.arange(ids.size(0), device=ids.device)
        distinct = ids[somewhere]
        if torch.equal(distinct[places], ids):
            return cls(distinct, places)
        return cls(*torch.unique(ids, dim=0, return_inverse=True))


def _codes(ids: torch.Tensor) -> torch.Tensor:
    """A number for each word, shape `(rows,)`, that hardly ever is another word's too."""
    generator = torch.Generator().manual_seed(ids.size(1))
    drawn = torch.randint(-(2**62), 2**62, (ids.size(1),), generator=generator, device="cpu")
    factors = drawn * 2 + 1
    return (ids * factors.to(ids.device)).sum(dim=1)
