"""Cross entropy over a large vocabulary, chunk by chunk, and the highest scores."""

from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.linear import PackedLinear, add_weight_gradient, filled_up

GROUP_SIZE = 64
"""Scores of which only the highest is looked at first."""


class TopScores(NamedTuple):
    """
    The highest scores of each row, best first.

    # Parameters

    values : `torch.Tensor`
        Shape `(rows, wanted)`.
    indices : `torch.Tensor`
        Shape `(rows, wanted)`: their columns.
    """

    values: torch.Tensor
    indices: torch.Tensor


def top_scores(scores: torch.Tensor, wanted: int) -> TopScores:
    """
    What `scores.topk(wanted)` gives, in the time of one pass over the scores: the highest ones of
    all lie in the groups with the highest maxima, so that only few groups are sorted.

    # Parameters

    scores : `torch.Tensor`
        Shape `(rows, columns)`.
    wanted : `int`
        How many scores of a row.

    # Returns

    `TopScores`
        In which order equal scores come is not told.
    """
    rows, columns = scores.shape
    groups = columns // GROUP_SIZE
    if groups <= wanted:
        return TopScores(*scores.topk(wanted))
    grouped = groups * GROUP_SIZE
    maxima = scores[:, :grouped].unflatten(1, (groups, GROUP_SIZE)).amax(dim=2)  # (rows, groups)
    leading = maxima.topk(wanted, sorted=False).indices.unsqueeze(2)  # (rows, wanted, 1)
    within = torch.arange(GROUP_SIZE, device=scores.device)
    members = (leading * GROUP_SIZE + within).flatten(1)  # (rows, wanted * GROUP_SIZE)
    ungrouped = torch.arange(grouped, columns, device=scores.device).expand(rows, -1)
    candidates = torch.cat([members, ungrouped], dim=1)
    top = scores.gather(1, candidates).topk(wanted)
    return TopScores(top.values, candidates.gather(1, top.indices))


CHUNK_SIZE = 2**21
"""Scores of a chunk: 8 MiB in float32, of the order of a processor's cache."""

CHUNK_SIZE_ON_A_GPU = 2**26
"""There, which small chunks would leave idle: 256 MiB in float32."""

MIN_ROWS = 256
"""
Predictions of a chunk, however many the words are: for fewer of them, reading the weights of a
large vocabulary takes longer than the products.
"""


class CrossEntropy(NamedTuple):
    """
    How well words were predicted.

    # Parameters

    loss : `torch.Tensor`
        Shape `()`: the mean of `losses`, with gradient.
    losses : `torch.Tensor`
        Shape `(predicted,)`: negative log probabilities of the targets, in nats.
    best : `torch.Tensor`
        Shape `(predicted, num_best)`, or fewer columns with fewer words: those with the highest
        scores, best first.
    """

    loss: torch.Tensor
    losses: torch.Tensor
    best: torch.Tensor


def chunked_cross_entropy(
    states: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    targets: torch.Tensor,
    *,
    dtype: torch.dtype,
    num_best: int,
    only_targets: Optional[torch.Tensor] = None,
) -> CrossEntropy:
    """
    The cross entropy of `softmax(states weightᵀ + bias)`, chunk by chunk of the predictions.

    # Parameters

    states : `torch.Tensor`
        Shape `(predicted, dim)`.
    weight : `torch.Tensor`
        Shape `(words, dim)`.
    bias : `torch.Tensor`
        Shape `(words,)`.
    targets : `torch.Tensor`
        Shape `(predicted,)`: places in `weight`.
    dtype : `torch.dtype`
        The precision of the products; all else has that of `weight`.
    num_best : `int`
        How many of the highest scores to find, at least 1. Fewer are faster.
    only_targets : `torch.Tensor`, optional (default = `None`)
        Shape `(some words,)`: places in `weight` of words that count for no prediction but those
        that they are the target of.

    # Returns

    `CrossEntropy`
        Only `loss` has a gradient, and no second one.
    """
    return CrossEntropy(
        *_ChunkedCrossEntropy.apply(
            states, weight, bias, targets, only_targets, dtype, num_best, torch.is_grad_enabled()
        )
    )


class _ChunkedCrossEntropy(torch.autograd.Function):
    """
    The gradients are made beside the scores, while those are at hand: `softmax - one_hot(target)`
    times what the scores were made of.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        targets: torch.Tensor,
        only_targets: Optional[torch.Tensor],
        dtype: torch.dtype,
        num_best: int,
        is_grad_enabled: bool,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        predicted, words = states.size(0), weight.size(0)
        num_chunks = _num_chunks(predicted, words, states.device)
        # All chunks have rows of a multiple, for the sake of the product's kernels: the last one
        # ends with the first prediction again and again, which counts for nothing there.
        missing = filled_up(predicted) - predicted
        if missing:
            states = torch.cat([states, states[:1].expand(missing, -1)])
            targets = torch.cat([targets, targets[:1].expand(missing)])
        losses = states.new_empty(len(states))
        best = targets.new_empty(len(states), min(num_best, words))
        product = PackedLinear(weight, dtype, num_chunks)
        # A context asks only whether inputs require gradients, not whether anybody wants them.
        has_gradients = is_grad_enabled and any(ctx.needs_input_grad)
        if has_gradients:
            of_states, of_weight, of_bias = map(torch.zeros_like, (states, weight, bias))
            product_back = PackedLinear(weight.t(), dtype, num_chunks)
            # Of the mean; with the states instead of the many scores it costs nothing.
            share = 1 / max(predicted, 1)
            counts = states.new_zeros(len(states))
            counts[:predicted] = share
            scaled = (states * counts.unsqueeze(1)).to(dtype)
        rows = filled_up(max(1, -(-predicted // num_chunks)))
        # What is rounded needs a second place. Pages that were taken anew for each chunk would be
        # cleared by the system each time.
        kept_rows = min(rows, len(states)) if dtype != weight.dtype else 0
        scores_space = states.new_empty(kept_rows, words)
        rounded_space = states.new_empty(kept_rows, words, dtype=dtype)
        for start in range(0, len(states), rows):
            chunk = slice(start, start + rows)
            own = targets[chunk].unsqueeze(1)  # (rows, 1)
            scores = _scores(product, states[chunk], bias, scores_space)  # (rows, words)
            at_target = scores.gather(1, own)
            if only_targets is not None:
                scores.index_fill_(1, only_targets, -torch.inf)
                scores.scatter_(1, own, at_target)
            top = top_scores(scores, best.size(1))
            best[chunk] = top.indices
            shares = torch.softmax(scores, dim=-1, out=scores)
            # The best word's probability is far from 0, so that it tells the sum of all exactly.
            log_sum = top.values[:, :1] - shares.gather(1, top.indices[:, :1]).log()
            losses[chunk] = (log_sum - at_target).squeeze(1)
            if has_gradients:
                shares.scatter_add_(1, own, -torch.ones_like(at_target))
                rounded = shares
                if dtype != weight.dtype:
                    rounded = rounded_space[: len(own)].copy_(shares)
                of_states[chunk] = product_back(rounded)
                add_weight_gradient(of_weight, rounded, scaled[chunk])
                of_bias.addmv_(shares.t(), counts[chunk])
        if has_gradients:
            ctx.save_for_backward(of_states[:predicted].mul_(share), of_weight, of_bias)
        losses, best = losses[:predicted], best[:predicted]
        ctx.mark_non_differentiable(losses, best)
        return losses.sum() / max(predicted, 1), losses, best

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor, *_: Any) -> Tuple[Optional[torch.Tensor], ...]:
        made = ctx.saved_tensors
        # A pass over the gradient of a large vocabulary's weights is worth sparing.
        if gradient.device.type != "cpu" or gradient != 1:
            made = tuple(tensor * gradient for tensor in made)
        return (*made, None, None, None, None, None)


def _num_chunks(predicted: int, words: int, device: torch.device) -> int:
    """How many chunks the predictions make, which are of about one size."""
    size = CHUNK_SIZE if device.type == "cpu" else CHUNK_SIZE_ON_A_GPU
    rows = max(MIN_ROWS, size // words)
    return max(1, -(-predicted // rows))


def _scores(
    product: PackedLinear, states: torch.Tensor, bias: torch.Tensor, space: torch.Tensor
) -> torch.Tensor:
    """Shape `(rows, words)`, of the type of `bias`, which is not rounded; may lie in `space`."""
    if product.dtype == bias.dtype:
        return product(states, bias)
    return space[: len(states)].copy_(product(states)).add_(bias)
