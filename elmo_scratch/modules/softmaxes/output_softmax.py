"""The base class of output softmaxes."""

from abc import ABC, abstractmethod
from typing import List, NamedTuple

import torch
from allennlp.common import Registrable

NUM_BEST = 5
"""How many of the most probable words are reported, for the top-5 accuracy."""


class ScoredWords(NamedTuple):
    """
    The losses and the best words of a number of predictions.

    # Parameters

    loss : `torch.Tensor`
        Shape `()`: the mean loss of a target, in nats, to train with.
    losses : `torch.Tensor`
        Shape `(predicted,)`: the negative log probability of each target, in nats, without
        gradient. Only to be reported if `is_exact`.
    best : `torch.Tensor`
        Shape `(predicted, 5)`, or fewer columns with fewer words: the most probable words, best
        first. In training the shape may be `(predicted, 0)`, if finding them takes too long.
    is_exact : `bool`
        Whether `losses` are those of the distribution over the whole vocabulary. Always true in
        evaluation; in training false if only a part of the vocabulary was scored.
    """

    loss: torch.Tensor
    losses: torch.Tensor
    best: torch.Tensor
    is_exact: bool


class OutputSoftmax(torch.nn.Module, Registrable, ABC):
    """A distribution over the words of a vocabulary, given a state of the biLM. Abstract."""

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
        """

    def log_probabilities(self, states: torch.Tensor) -> torch.Tensor:
        """
        The whole distribution at each place, the one that `forward` measures in evaluation.

        # Parameters

        states : `torch.Tensor`
            Shape `(predicted, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(predicted, words)`, in nats; minus infinity for what is never predicted.

        # Raises

        NotImplementedError
            If the softmax, one of another package, leaves this out: nothing but the list of likely
            words of `allennlp elmo-score` asks for it.
        """
        raise NotImplementedError

    def average_gradients(self) -> List[str]:
        """
        Lets the softmax average gradients over the workers of a distributed training by itself, if
        it can do so at less cost than `DistributedDataParallel`.

        # Returns

        `List[str]`
            The names of the parameters that the softmax averages from now on. The caller must
            exclude them from `DistributedDataParallel`. At the first batch each worker gets the
            first worker's values.
        """
        return []
