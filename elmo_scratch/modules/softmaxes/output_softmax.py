"""What every output softmax promises."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from allennlp.common import Registrable


class ScoredWords(NamedTuple):
    """
    The judgement of a softmax over a number of predictions.

    # Parameters

    loss : `torch.Tensor`
        Shape `()`: the mean loss of a target, in nats, to train with.
    losses : `torch.Tensor`
        Shape `(predicted,)`: the negative log probability of each target by the exact softmax, in
        nats, to report. Without gradient.
    best : `torch.Tensor`
        Shape `(predicted, 5)`, or fewer columns with fewer words: the most probable words, best
        first.
    """

    loss: torch.Tensor
    losses: torch.Tensor
    best: torch.Tensor


class OutputSoftmax(torch.nn.Module, Registrable, ABC):
    """
    A distribution over the words of a vocabulary, given a state of the biLM. Abstract.
    """

    @abstractmethod
    def forward(self, states: torch.Tensor, targets: torch.Tensor) -> ScoredWords:
        """
        # Parameters

        states : `torch.Tensor`
            Shape `(predicted, dim)`.
        targets : `torch.Tensor`
            Shape `(predicted,)`: the id of the word at each place.

        # Returns

        `ScoredWords`
        """
