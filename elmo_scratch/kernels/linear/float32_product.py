"""
Products in float32 by oneDNN, in training.

PyTorch's own product is MKL's where it has one. MKL has AVX-512 kernels for Intel's processors
alone, and sums a row in an order that depends on how many rows come with it. oneDNN has kernels for
each instruction set, and its rows don't depend on each other.
"""

from typing import Optional

import torch

from elmo_scratch.kernels.linear.onednn_product import ROWS_TOGETHER, OneDnnProduct
from elmo_scratch.kernels.recycled_memory import LARGE_RESULT, RECYCLED

ROWS_AT_ONCE = 512
"""So many rows of a large result are made at once, and copied while they are in a cache."""


def can_multiply(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor] = None
) -> bool:
    """
    # Parameters

    left, right, summand
        As in `multiply`.

    # Returns

    `bool`
        Whether `multiply` can.
    """
    return (
        left.dtype == torch.float32
        and left.numel() > 0
        and (summand is None or summand.dim() == 1)
        and OneDnnProduct.knows(right)
    )


def multiply(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """
    # Parameters

    left : `torch.Tensor`
        Shape `(rows, inputs)`, in float32, without a gradient.
    right : `torch.Tensor`
        Shape `(inputs, columns)`, in float32.
    summand : `torch.Tensor`, optional (default = `None`)
        Shape `(columns,)`, in float32.

    # Returns

    `torch.Tensor`
        Shape `(rows, columns)`: the product and what is added to each of its rows. The numbers of
        a column may lie side by side, if those of `left` do.
    """
    if left.is_contiguous():
        return _product(left, right, summand)
    # The rows of a batch are summed over. oneDNN compiles a kernel for each number of them too, and
    # keeps it: PyTorch's product adds those beyond a multiple.
    whole = left.size(1) - left.size(1) % ROWS_TOGETHER
    if whole == 0:
        return torch.mm(left, right) if summand is None else torch.addmm(summand, left, right)
    result = _product(left[:, :whole], right[:whole], summand)
    return result if whole == left.size(1) else result.addmm_(left[:, whole:], right[whole:])


def _product(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor]
) -> torch.Tensor:
    """As `multiply`, with a kernel for this number of inputs."""
    shape = (left.size(0), right.size(1))
    size = shape[0] * shape[1]
    # oneDNN reads the left one row by row. To turn the right one takes less than a large left one.
    if summand is None and not left.is_contiguous() and left.numel() > right.numel():
        return OneDnnProduct(_dense(left), is_packed=False)(right.t().contiguous()).t()
    product = OneDnnProduct(_dense(right.t()), is_packed=False)
    if size < LARGE_RESULT:
        return product(left.contiguous(), summand)
    result = RECYCLED.empty(shape, left.dtype)
    for place, rows in zip(result.split(ROWS_AT_ONCE), left.split(ROWS_AT_ONCE)):
        place.copy_(product(rows.contiguous(), summand))
    return result


def _dense(matrix: torch.Tensor) -> torch.Tensor:
    """Without gaps: those make oneDNN multiply without its kernels, a hundred times as slow."""
    is_dense = matrix.is_contiguous() or matrix.t().is_contiguous()
    return matrix if is_dense else matrix.contiguous()
