"""Perplexity over a whole set, weighted by tokens."""

import math

import torch
from allennlp.nn.util import dist_reduce_sum


class Perplexity:
    """
    `exp(sum of losses / number of predicted tokens)` over everything seen since the last reset.
    """

    def __init__(self) -> None:
        self._loss_sum = 0.0
        self.num_tokens = 0
        """How many were seen."""

    def __call__(self, losses: torch.Tensor) -> None:
        """
        # Parameters

        losses : `torch.Tensor`
            Shape `(predicted,)`: the negative log probability of each token, in nats.
        """
        # As a tensor: of a number AllenNLP would make one of single precision.
        self._loss_sum += float(dist_reduce_sum(losses.detach().double().sum()))
        self.num_tokens += dist_reduce_sum(losses.numel())

    @property
    def loss(self) -> float:
        """Mean loss of a token, in nats; 0 before the first token."""
        return self._loss_sum / max(self.num_tokens, 1)

    @staticmethod
    def of_loss(loss: float) -> float:
        """The exponential of a mean loss; infinite where that is too large for a number."""
        try:
            return math.exp(loss)
        except OverflowError:
            return math.inf

    def reset(self) -> None:
        """Forgets everything seen."""
        self._loss_sum = 0.0
        self.num_tokens = 0
