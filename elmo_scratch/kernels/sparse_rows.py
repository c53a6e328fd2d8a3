"""Some rows of a large parameter, with a gradient of those rows only."""

from typing import Any, Tuple

import torch
from torch.autograd.function import once_differentiable


def sparse_rows(parameter: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """
    As `parameter[rows]`, but with a sparse gradient, of vectors and single numbers alike.

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
    """The rows and their gradient."""

    @staticmethod
    def forward(ctx: Any, parameter: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = parameter.shape
        return parameter.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[torch.Tensor, None]:
        (rows,) = ctx.saved_tensors
        # Said explicitly, because PyTorch warns of checks that it leaves out unasked.
        sparse = torch.sparse_coo_tensor(
            rows.unsqueeze(0), gradient, ctx.shape, is_coalesced=True, check_invariants=False
        )
        return sparse, None
