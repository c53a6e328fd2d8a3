"""
A softmax over a large vocabulary: cross entropy chunk by chunk, the highest scores, and rows of its
weights, looked up with sparse gradients and averaged over workers.
"""

from typing import Any, NamedTuple, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.linear import PackedLinear
from elmo_scratch.kernels.onednn import padded_rows
from elmo_scratch.kernels.weight_gradients import add_weight_gradient

GROUP_SIZE = 64
"""Scores are grouped by so many, and the groups are ranked by their maxima."""


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
    The result of `scores.topk(wanted)`, in the time of one pass over the scores: the highest scores
    lie in the groups with the highest maxima, so only few groups are sorted.

    # Parameters

    scores : `torch.Tensor`
        Shape `(rows, columns)`.
    wanted : `int`
        How many scores of a row.

    # Returns

    `TopScores`
        The order of equal scores is unspecified.
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
"""Scores of a chunk: 8 MiB in float32, about the size of a CPU's cache."""

CHUNK_SIZE_ON_A_GPU = 2**26
"""Scores of a chunk on a GPU, which small chunks would leave idle: 256 MiB in float32."""

MIN_ROWS = 256
"""
The fewest predictions of a chunk, for any number of words: with fewer, reading the weights of a
large vocabulary takes longer than the products.
"""


class CrossEntropy(NamedTuple):
    """
    The mean `loss`, shape `()`, with gradient; the `losses`, shape `(predicted,)`: negative log
    probabilities of the targets, in nats; and the `best` words, those with the highest scores, best
    first: shape `(predicted, num_best)`, or fewer columns with fewer words.
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
    The cross entropy of `softmax(states weightᵀ + bias)`, computed by chunks of predictions.

    # Parameters

    states : `torch.Tensor`
        Shape `(predicted, dim)`.
    weight : `torch.Tensor`
        Shape `(words, dim)`.
    bias : `torch.Tensor`
        Shape `(words,)`.
    targets : `torch.Tensor`
        Shape `(predicted,)`: rows of `weight`.
    dtype : `torch.dtype`
        The precision of the products; everything else has that of `weight`.
    num_best : `int`
        How many of the highest scores to find, at least 1. Fewer are faster.
    only_targets : `torch.Tensor`, optional (default = `None`)
        Shape `(some words,)`: rows of `weight`. These words count only in predictions whose target
        they are.

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
    Computes the gradients along with the scores, while those are in a cache:
    `softmax - one_hot(target)` times the factors of the scores.
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
        # Each chunk has a number of rows for which the product needs no padding of its own. The
        # last chunk is padded with copies of the first prediction, which count for nothing.
        missing = padded_rows(predicted) - predicted
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
            # The loss is a mean. Scaling the states costs nothing next to scaling the many scores.
            share = 1 / max(predicted, 1)
            counts = states.new_zeros(len(states))
            counts[:predicted] = share
            scaled = (states * counts.unsqueeze(1)).to(dtype)
        rows = padded_rows(max(1, -(-predicted // num_chunks)))
        # Rounded scores need a second buffer. Both are allocated once, because the system would
        # clear the pages of new buffers for every chunk.
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
            # The best word's probability is far from 0, so the sum follows from it exactly.
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
        # Skips a pass over the gradients of a large vocabulary's weights.
        if gradient.device.type != "cpu" or gradient != 1:
            made = tuple(tensor * gradient for tensor in made)
        return (*made, None, None, None, None, None)


def _num_chunks(predicted: int, words: int, device: torch.device) -> int:
    """The number of chunks, all of about one size."""
    size = CHUNK_SIZE if device.type == "cpu" else CHUNK_SIZE_ON_A_GPU
    rows = max(MIN_ROWS, size // words)
    return max(1, -(-predicted // rows))


def _scores(
    product: PackedLinear, states: torch.Tensor, bias: torch.Tensor, space: torch.Tensor
) -> torch.Tensor:
    """
    Unrounded scores of shape `(rows, words)`, of the type of `bias`; may be written to `space`.
    """
    if product.dtype == bias.dtype:
        return product(states, bias)
    return space[: len(states)].copy_(product(states)).add_(bias)


def sparse_rows(parameter: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """
    `parameter[rows]`, but with a sparse gradient. Works for matrices and vectors.

    # Parameters

    parameter : `torch.Tensor`
        Shape `(words, *)`.
    rows : `torch.Tensor`
        Shape `(chosen,)`: distinct, in rising order.

    # Returns

    `torch.Tensor`
        Shape `(chosen, *)`.
    """
    return _SparseRows.apply(parameter, rows)


class _SparseRows(torch.autograd.Function):
    """The rows, with a sparse gradient."""

    @staticmethod
    def forward(ctx: Any, parameter: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = parameter.shape
        return parameter.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[torch.Tensor, None]:
        (rows,) = ctx.saved_tensors
        # Explicit, because PyTorch warns if it skips these checks by default.
        sparse = torch.sparse_coo_tensor(
            rows.unsqueeze(0), gradient, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return sparse, None


def rows_of_all_workers(rows: torch.Tensor, num_rows: int) -> torch.Tensor:
    """
    The rows that any worker has chosen. All workers must call it together.

    # Parameters

    rows : `torch.Tensor`
        Shape `(chosen,)`: this worker's rows; may be empty.
    num_rows : `int`
        How many rows there are to choose from.

    # Returns

    `torch.Tensor`
        Shape `(chosen by any,)`: distinct, in rising order, the same in each worker.
    """
    # One byte per row is little next to the gradients of the chosen rows.
    is_chosen = torch.zeros(num_rows, dtype=torch.uint8, device=rows.device)
    is_chosen[rows] = 1
    torch.distributed.all_reduce(is_chosen, torch.distributed.ReduceOp.MAX)
    return is_chosen.nonzero().squeeze(1)


def averaged_rows(
    parameter: torch.Tensor, rows: torch.Tensor, of_all: torch.Tensor
) -> torch.Tensor:
    """
    `sparse_rows(parameter, rows)`, but the gradient holds the rows of all workers and is the mean
    of their gradients. `DistributedDataParallel` must ignore the parameter. The workers exchange a
    dense tensor, since NCCL has no sparse ones. Every worker must run the backward pass.

    # Parameters

    parameter : `torch.Tensor`
        Shape `(words, *)`, the same in each worker.
    rows : `torch.Tensor`
        Shape `(chosen,)`: distinct, in rising order.
    of_all : `torch.Tensor`
        Shape `(chosen by any,)`, from `rows_of_all_workers`.

    # Returns

    `torch.Tensor`
        Shape `(chosen, *)`.
    """
    table = _MeanGradient.apply(sparse_rows(parameter, of_all))  # (chosen by any, *)
    return table.index_select(0, torch.searchsorted(of_all, rows))


class _MeanGradient(torch.autograd.Function):
    """
    The identity, with the mean gradient of all workers. It runs backward before any earlier layer,
    so its exchange comes before those of `DistributedDataParallel`.
    """

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        mean = (gradient / torch.distributed.get_world_size()).contiguous()
        torch.distributed.all_reduce(mean)
        return mean
