"""What a language model has to predict in a batch, and from what."""

from typing import NamedTuple

import torch


class Predictions(NamedTuple):
    """
    The two directions, one after the other.

    # Parameters

    states : `torch.Tensor`
        Shape `(predicted, dim)`: what each word is predicted from; the left-to-right ones first.
    targets : `torch.Tensor`
        Shape `(predicted,)`: the ids of the words.
    num_left_to_right : `int`
        How many are of the left-to-right direction.
    fullness : `float`, optional (default = `1.0`)
        Of a window of running text the share in which there is text, in `[0, 1]`: the last ones of
        an epoch, where most streams have ended, may hold a single word.
    """

    states: torch.Tensor
    targets: torch.Tensor
    num_left_to_right: int
    fullness: float = 1.0

    @classmethod
    def of_sentences(
        cls, top: torch.Tensor, words: torch.Tensor, mask: torch.Tensor
    ) -> "Predictions":
        """
        Every position but the first is predicted from its left, and every one but the last from its
        right: as many predictions in both directions.

        # Parameters

        top : `torch.Tensor`
            Shape `(batch, positions, width)`: the last layer.
        words : `torch.Tensor`
            Shape `(batch, positions)`: the ids of the words and the marks around them.
        mask : `torch.BoolTensor`
            Shape `(batch, positions)`.
        """
        left_to_right, right_to_left = top.chunk(2, dim=-1)  # each (batch, positions, dim)
        followed = mask[:, 1:]  # (batch, positions - 1)
        from_left, from_right = left_to_right[:, :-1][followed], right_to_left[:, 1:][followed]
        return cls(
            torch.cat([from_left, from_right]),
            torch.cat([words[:, 1:][followed], words[:, :-1][followed]]),
            len(from_left),
        )

    @classmethod
    def of_windows(
        cls,
        left_to_right: torch.Tensor,
        right_to_left: torch.Tensor,
        left_to_right_targets: torch.Tensor,
        right_to_left_targets: torch.Tensor,
        mask: torch.Tensor,
    ) -> "Predictions":
        """
        # Parameters

        left_to_right, right_to_left : `torch.Tensor`
            Shape `(batch, positions, dim)`: the last layer of each direction, in its own order of
            reading.
        left_to_right_targets, right_to_left_targets : `torch.Tensor`
            Shape `(batch, positions)`: the word that follows in each direction, 0 for none.
        mask : `torch.BoolTensor`
            Shape `(batch, positions)`: where a stream goes on.
        """
        from_left = left_to_right[left_to_right_targets > 0]
        from_right = right_to_left[right_to_left_targets > 0]
        targets = [words[words > 0] for words in (left_to_right_targets, right_to_left_targets)]
        return cls(
            torch.cat([from_left, from_right]),
            torch.cat(targets),
            len(from_left),
            int(mask.sum()) / mask.numel(),
        )
