"""The exact softmax over the whole vocabulary."""

import torch

from elmo_scratch.kernels import MixedPrecision, chunked_cross_entropy
from elmo_scratch.modules.softmaxes.output_softmax import NUM_BEST, OutputSoftmax, ScoredWords


@OutputSoftmax.register("full")
class FullSoftmax(OutputSoftmax, MixedPrecision):
    """
    One weight vector and one bias a word. In training its products may run in less precision:
    scores are then rounded, but the losses are computed in full precision. Nothing is rounded in
    evaluation.

    Registered as an `OutputSoftmax` with name "full".

    # Parameters

    num_words : `int`
        The size of the vocabulary. Supplied by the language model that owns the softmax.
    dim : `int`
        The size of a state. Supplied likewise.
    """

    rounds_in_evaluation = False
    wants_frequent_first = False

    def __init__(self, *, num_words: int, dim: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(num_words, dim))
        self.bias = torch.nn.Parameter(torch.zeros(num_words))
        torch.nn.init.normal_(self.weight, std=dim**-0.5)

    def forward(self, states: torch.Tensor, targets: torch.Tensor) -> ScoredWords:
        """Always exact."""
        dtype = self.matmul_dtype_for(self.weight)
        scored = chunked_cross_entropy(
            states, self.weight, self.bias, targets, dtype=dtype, num_best=NUM_BEST
        )
        return ScoredWords(*scored, is_exact=True)

    def log_probabilities(self, states: torch.Tensor) -> torch.Tensor:
        scores = torch.nn.functional.linear(states, self.weight, self.bias)  # (predicted, words)
        return torch.log_softmax(scores, dim=1)
