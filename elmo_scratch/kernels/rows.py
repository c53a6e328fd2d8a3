"""Rows of a large parameter: looked up with sparse gradients, and averaged over workers."""

from typing import Any, Tuple

import torch
from torch.autograd.function import once_differentiable


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
