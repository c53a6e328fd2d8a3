"""The exact softmax over the whole vocabulary."""

from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.modules.softmaxes.output_softmax import OutputSoftmax, ScoredWords

NUM_BEST = 5
"""How many of the most probable words are reported, for the top-5 accuracy."""

CHUNK_SIZE = 2**22
"""Scores that are held at a time: 16 MiB in float32, of the order of a processor's cache."""


@OutputSoftmax.register("full")
class FullSoftmax(OutputSoftmax):
    """
    One weight vector and one bias a word.

    Registered as an `OutputSoftmax` with name "full".

    # Parameters

    num_words : `int`
        The size of the vocabulary. The language model that owns the softmax supplies it.
    dim : `int`
        The size of a state. Supplied likewise.
    """

    def __init__(self, *, num_words: int, dim: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(num_words, dim))
        self.bias = torch.nn.Parameter(torch.zeros(num_words))
        torch.nn.init.normal_(self.weight, std=dim**-0.5)

    def forward(self, states: torch.Tensor, targets: torch.Tensor) -> ScoredWords:
        """
        # Parameters

        states : `torch.Tensor`
            Shape `(predicted, dim)`.
        targets : `torch.Tensor`
            Shape `(predicted,)`.

        # Returns

        `ScoredWords`
        """
        return ScoredWords(
            *_ChunkedCrossEntropy.apply(
                states, self.weight, self.bias, targets, torch.is_grad_enabled()
            )
        )


class _ChunkedCrossEntropy(torch.autograd.Function):
    """
    Mean cross entropy, chunk by chunk of the predictions, so that the scores of all predictions
    over all words never exist at once. The gradients are made beside the scores, while those are
    at hand: `softmax - one_hot(target)` times what the scores were made of.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        targets: torch.Tensor,
        is_grad_enabled: bool,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        predicted, words = states.size(0), weight.size(0)
        losses = states.new_empty(predicted)
        best = targets.new_empty(predicted, min(NUM_BEST, words))
        # A context asks only whether inputs require gradients, not whether anybody wants them.
        has_gradients = is_grad_enabled and any(ctx.needs_input_grad)
        if has_gradients:
            gradients = tuple(torch.zeros_like(tensor) for tensor in (states, weight, bias))
            of_states, of_weight, of_bias = gradients
            ctx.save_for_backward(*gradients)
        rows = max(1, CHUNK_SIZE // words)
        buffer = states.new_empty(min(rows, predicted), words)
        for start in range(0, predicted, rows):
            chunk = slice(start, min(start + rows, predicted))
            scores = buffer[: chunk.stop - start]  # (rows, words)
            torch.addmm(bias, states[chunk], weight.t(), out=scores)
            top = scores.topk(best.size(1), dim=-1)
            best[chunk] = top.indices
            scores.sub_(top.values[:, :1])
            at_target = scores.gather(1, targets[chunk].unsqueeze(1))  # (rows, 1)
            total = scores.exp_().sum(dim=-1, keepdim=True)  # (rows, 1)
            losses[chunk] = (total.log() - at_target).squeeze(1)
            if has_gradients:
                scores.div_(total * predicted)
                scores[torch.arange(len(scores), device=scores.device), targets[chunk]] -= (
                    1 / predicted
                )
                torch.mm(scores, weight, out=of_states[chunk])
                of_weight.addmm_(scores.t(), states[chunk])
                of_bias.add_(scores.sum(dim=0))
        ctx.mark_non_differentiable(losses, best)
        return losses.mean(), losses, best

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor, *_: Any) -> Tuple[Optional[torch.Tensor], ...]:
        return (*(made * gradient for made in ctx.saved_tensors), None, None)
