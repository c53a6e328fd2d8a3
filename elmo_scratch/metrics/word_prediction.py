"""Measures how well a language model predicts words."""

import torch
from allennlp.nn.util import dist_reduce_sum

from elmo_scratch.metrics.confusion_matrix import ConfusionMatrix
from elmo_scratch.metrics.precision_recall_f1 import MacroScores, PrecisionRecallF1


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
