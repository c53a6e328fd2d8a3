"""The base class of output softmaxes."""

from abc import ABC, abstractmethod
from typing import List, NamedTuple

import torch
from allennlp.common import Registrable

NUM_BEST = 5
"""How many of the most probable words are reported, for the top-5 accuracy."""


class ScoredWords(NamedTuple):
    """
    The judgement of a softmax over a number of predictions.

    # Parameters

    loss : `torch.Tensor`
        Shape `()`: the mean loss of a target, in nats, to train with.
    losses : `torch.Tensor`
        Shape `(predicted,)`: the negative log probability of each target, in nats, without
        gradient. To be reported only where `is_exact`.
    best : `torch.Tensor`
        Shape `(predicted, 5)`, or fewer columns with fewer words: the most probable words, best
        first. Shape `(predicted, 0)` where finding them is too dear: in evaluation never.
    is_exact : `bool`
        Whether `losses` are of the distribution over the whole vocabulary: in evaluation always, in
        training not if only a part of the vocabulary was looked at.
    """

    loss: torch.Tensor
    losses: torch.Tensor
    best: torch.Tensor
    is_exact: bool


class OutputSoftmax(torch.nn.Module, Registrable, ABC):
    """
    A distribution over the words of a vocabulary, given a state of the biLM. Abstract.
    """

    wants_frequent_first: bool
    """Whether the ids of words must be in order of frequency."""

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

    def average_gradients(self) -> List[str]:
        """
        Lets the softmax average gradients over the workers of a distributed training by itself, if
        it can do so at less cost than `DistributedDataParallel`.

        # Returns

        `List[str]`
            The names of the parameters that it does so with, from now on. Whoever asks keeps them
            out of `DistributedDataParallel`. At the first batch each worker gets those of the
            first.
        """
        return []
