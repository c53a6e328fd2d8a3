"""
Scores over an epoch. Every metric here sums exact counts over the whole set, never averages the
results of batches, and agrees among the workers of a distributed run.
"""

import math
from typing import NamedTuple

import torch
from allennlp.nn.util import dist_reduce_sum


class Perplexity:
    """
    Computes `exp(sum of losses / number of predicted tokens)` over all tokens since the last reset.
    """

    def __init__(self) -> None:
        self._loss_sum = 0.0
        self.num_tokens = 0
        """The number of tokens since the last reset."""

    def __call__(self, losses: torch.Tensor) -> None:
        """
        Adds the negative log probability of each predicted token, in nats. Shape `(predicted,)`.
        """
        # AllenNLP would convert a plain number to a tensor of single precision.
        self._loss_sum += float(dist_reduce_sum(losses.detach().double().sum()))
        self.num_tokens += dist_reduce_sum(losses.numel())

    @property
    def loss(self) -> float:
        """Mean loss of a token, in nats; 0 before the first token."""
        return self._loss_sum / max(self.num_tokens, 1)

    @staticmethod
    def of_loss(loss: float) -> float:
        """The exponential of a mean loss; infinity if it is too large for a float."""
        try:
            return math.exp(loss)
        except OverflowError:
            return math.inf

    def reset(self) -> None:
        """Forgets everything seen."""
        self._loss_sum = 0.0
        self.num_tokens = 0


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


class WordPrediction:
    """
    Accuracy of the first and of the five best guesses, macro precision, recall and F1 over the
    words, and a confusion matrix over chosen words and "the rest", since the last reset.

    # Parameters

    num_words : `int`
        The size of the vocabulary.
    confusion_words : `torch.Tensor`
        Shape `(chosen,)`: the ids of the words that have a row and a column of their own in the
        confusion matrix. All others share the last row and the last column.
    """

    def __init__(self, num_words: int, confusion_words: torch.Tensor) -> None:
        num_chosen = confusion_words.numel()
        self._class_of_word = torch.full((num_words,), num_chosen, dtype=torch.long)
        self._class_of_word[confusion_words] = torch.arange(num_chosen)
        self._confusion = ConfusionMatrix(num_chosen + 1)
        # Rows: rightly predicted, predicted, true. Shape: (3, words). These are this worker's own
        # counts: the sum over workers is slow for a large vocabulary, so only `macro` computes it.
        self._counts = torch.zeros(3, num_words, dtype=torch.long)
        self._num_hits = self._num_hits_in_best = 0
        self.num_predicted = 0
        """The number of predicted words since the last reset."""

    def __call__(self, best: torch.Tensor, targets: torch.Tensor) -> None:
        """
        Counts predictions.

        # Parameters

        best : `torch.Tensor`
            Shape `(predicted, 5)`: ids of the most probable words, best first.
        targets : `torch.Tensor`
            Shape `(predicted,)`: the ids of the true words.
        """
        best, targets = best.cpu(), targets.cpu()
        guesses = best[:, 0]
        hits = guesses[guesses == targets]
        for counts, words in zip(self._counts, (hits, guesses, targets)):
            counts.index_add_(0, words, torch.ones_like(words))
        in_best = int((best == targets.unsqueeze(1)).sum())
        numbers = torch.tensor([len(hits), in_best, len(targets)])
        num_hits, num_hits_in_best, num_predicted = dist_reduce_sum(numbers).tolist()
        self._num_hits += num_hits
        self._num_hits_in_best += num_hits_in_best
        self.num_predicted += num_predicted
        self._confusion(self._class_of_word[guesses], self._class_of_word[targets])

    @property
    def top_1_accuracy(self) -> float:
        """The share of words that were guessed first."""
        return self._num_hits / max(self.num_predicted, 1)

    @property
    def top_5_accuracy(self) -> float:
        """The share of words that were among the five best guesses."""
        return self._num_hits_in_best / max(self.num_predicted, 1)

    @property
    def confusion(self) -> torch.Tensor:
        """Shape `(chosen + 1, chosen + 1)`: true words in rows, guessed ones in columns."""
        return self._confusion.counts

    def macro(self) -> MacroScores:
        """
        The means of precision, recall and F1 over the words that were true or guessed. All workers
        of a distributed training have to call it.
        """
        return PrecisionRecallF1.from_counts(*dist_reduce_sum(self._counts).cpu()).macro()

    def reset(self) -> None:
        """Forgets everything seen."""
        self._counts.zero_()
        self._num_hits = self._num_hits_in_best = self.num_predicted = 0
        self._confusion.reset()
