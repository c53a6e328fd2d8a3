"""Computes precision, recall and F1 from counts."""

from typing import NamedTuple

import torch


class PrecisionRecallF1(NamedTuple):
    """
    Scores of each class.

    # Parameters

    precision, recall, f1 : `torch.Tensor`
        Shape `(classes,)`; 0 where the divisor is 0.
    seen : `torch.BoolTensor`
        Shape `(classes,)`: the classes that were true or predicted at least once.
    """

    precision: torch.Tensor
    recall: torch.Tensor
    f1: torch.Tensor
    seen: torch.Tensor

    @classmethod
    def from_counts(
        cls, hits: torch.Tensor, predicted: torch.Tensor, gold: torch.Tensor
    ) -> "PrecisionRecallF1":
        """
        Computes the scores from how often each class was predicted correctly, was predicted, and
        was true. Each tensor has the shape `(classes,)`.
        """
        hits, predicted, gold = hits.double(), predicted.double(), gold.double()
        return cls(
            precision=hits / predicted.clamp(min=1),
            recall=hits / gold.clamp(min=1),
            f1=2 * hits / (predicted + gold).clamp(min=1),
            seen=predicted + gold > 0,
        )

    def macro(self) -> "MacroScores":
        """The unweighted means over the classes that were seen, 0 if none was."""
        num_seen = max(int(self.seen.sum()), 1)
        return MacroScores(*(scores[self.seen].sum().item() / num_seen for scores in self[:3]))


class MacroScores(NamedTuple):
    """The means of the scores over classes, each in `[0, 1]`."""

    precision: float
    recall: float
    f1: float
