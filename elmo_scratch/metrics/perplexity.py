"""Computes the perplexity over a whole set, weighted by tokens."""

import math

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
