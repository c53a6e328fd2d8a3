"""Sentences as a biLM reads them."""

from typing import List, NamedTuple, Optional

import torch


class SpelledBatch(NamedTuple):
    """
    Sentences in numbers.

    # Parameters

    ids : `torch.Tensor`
        Of shape `(batch, tokens)` the places of the words in `words`. Where there are none, what
        the token encoder reads, of shape `(batch, tokens)` or `(batch, tokens, characters)`. 0
        where a sentence has ended.
    mask : `torch.BoolTensor`
        Shape `(batch, tokens)`.
    lengths : `List[int]`
        How many tokens each sentence has.
    words : `torch.Tensor`, optional
        Shape `(words, characters)`: for a biLM of characters, each word once, however often it
        comes.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    lengths: List[int]
    words: Optional[torch.Tensor] = None

    @classmethod
    def of(
        cls, ids: torch.Tensor, lengths: List[int], words: Optional[torch.Tensor] = None
    ) -> "SpelledBatch":
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens)` or `(batch, tokens, characters)`.
        lengths : `List[int]`
            How many tokens each sentence has.
        words : `torch.Tensor`, optional
            Shape `(words, characters)`, where `ids` are places in it.

        # Returns

        `SpelledBatch`
            As many tokens long as its longest sentence.
        """
        longest = max(lengths, default=0)
        ends = torch.tensor(lengths, dtype=torch.long, device="cpu").unsqueeze(1)
        mask = torch.arange(longest, device="cpu") < ends
        return cls(ids[:, :longest], mask, lengths, words)

    def rows(self, first: int, last: int) -> "SpelledBatch":
        """The sentences from number `first` up to, but without, `last`, and their words alone."""
        part = self.of(self.ids[first:last], self.lengths[first:last])
        if self.words is None:
            return part
        # Half of a batch that did not fit into memory shall have less to encode.
        come, places = part.ids[part.mask].unique(return_inverse=True)
        ids = torch.zeros_like(part.ids)
        ids[part.mask] = places
        return part._replace(ids=ids, words=self.words[come])

    def token_ids(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(batch, tokens)` or `(batch, tokens, characters)`: what the token encoder reads.
        """
        if self.words is None:
            return self.ids
        spelled = self.words.new_zeros(*self.ids.shape, self.words.size(1))
        spelled[self.mask] = self.words[self.ids[self.mask]]
        return spelled
