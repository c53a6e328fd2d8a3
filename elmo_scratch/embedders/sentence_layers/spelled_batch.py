"""Sentences as a biLM reads them."""

from typing import List, NamedTuple

import torch


class SpelledBatch(NamedTuple):
    """
    Sentences in numbers.

    # Parameters

    ids : `torch.Tensor`
        Shape `(batch, tokens, characters)`, or `(batch, tokens)` for a biLM of words. 0 where a
        sentence has ended.
    mask : `torch.BoolTensor`
        Shape `(batch, tokens)`.
    lengths : `List[int]`
        How many tokens each sentence has.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    lengths: List[int]

    @classmethod
    def of(cls, ids: torch.Tensor, lengths: List[int]) -> "SpelledBatch":
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens, characters)` or `(batch, tokens)`.
        lengths : `List[int]`
            How many tokens each sentence has.

        # Returns

        `SpelledBatch`
            As many tokens long as its longest sentence.
        """
        longest = max(lengths, default=0)
        ends = torch.tensor(lengths, dtype=torch.long, device="cpu").unsqueeze(1)
        mask = torch.arange(longest, device="cpu") < ends
        return cls(ids[:, :longest], mask, lengths)

    def rows(self, first: int, last: int) -> "SpelledBatch":
        """The sentences from number `first` up to, but without, `last`."""
        return self.of(self.ids[first:last], self.lengths[first:last])
