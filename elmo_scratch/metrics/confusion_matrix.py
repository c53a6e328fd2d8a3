"""Counts which class is predicted for which."""

import torch
from allennlp.nn.util import dist_reduce_sum

from elmo_scratch.metrics.precision_recall_f1 import PrecisionRecallF1


class ConfusionMatrix:
    """
    Counts every pair of a true and a predicted class since the last reset.

    # Parameters

    num_classes : `int`
        How many classes.
    """

    def __init__(self, num_classes: int) -> None:
        self._num_classes = num_classes
        self.counts = torch.zeros(num_classes, num_classes, dtype=torch.long)
        """Shape `(classes, classes)`: true classes in rows, predicted ones in columns."""

    def __call__(self, predictions: torch.Tensor, gold: torch.Tensor) -> None:
        """Counts examples. Both tensors hold ids of classes, shape `(examples,)`."""
        pairs = gold.flatten() * self._num_classes + predictions.flatten()
        counts = torch.bincount(pairs, minlength=self._num_classes**2)
        self.counts += dist_reduce_sum(counts).cpu().view_as(self.counts)

    def scores(self) -> PrecisionRecallF1:
        """Precision, recall and F1 of each class."""
        return PrecisionRecallF1.from_counts(
            self.counts.diagonal(), self.counts.sum(dim=0), self.counts.sum(dim=1)
        )

    def accuracy(self) -> float:
        """The share of correctly predicted examples, 0 without any."""
        return self.counts.diagonal().sum().item() / max(self.counts.sum().item(), 1)

    def reset(self) -> None:
        """Forgets everything seen."""
        self.counts.zero_()
