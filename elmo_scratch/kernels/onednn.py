"""Products by oneDNN, with or without packed weights, and products into recycled memory."""

from functools import lru_cache
from typing import Optional

import torch

from elmo_scratch.kernels.memory import LARGE_RESULT, buffer_pool

MANY_ROWS, ROWS_TOGETHER = 128, 16
"""From so many rows they are padded to a multiple, which then costs little."""


def has_kernels_for(weight: torch.Tensor) -> bool:
    """Whether oneDNN has kernels for products with a weight."""
    if weight.device.type != "cpu" or weight.numel() == 0 or not torch.backends.mkldnn.enabled:
        return False
    return weight.dtype in (torch.float32, torch.bfloat16) and _has_kernels(weight.dtype)


@lru_cache(maxsize=None)
def _has_kernels(dtype: torch.dtype) -> bool:
    """
    Whether oneDNN has kernels in `dtype` on this processor. A product is tried, because oneDNN may
    be limited to fewer instructions (`ONEDNN_MAX_CPU_ISA`) than PyTorch sees, and it raises an
    error if it lacks a kernel.
    """
    if not torch.backends.mkldnn.is_available():
        return False
    if dtype == torch.bfloat16 and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    with torch.inference_mode():
        ones = torch.ones(2, 2, dtype=dtype, device="cpu")
        try:
            linear(ones, pack(ones))
        except RuntimeError:
            return False
    return True


def pack(weight: torch.Tensor) -> torch.Tensor:
    """
    Copies a matrix that `has_kernels_for` to the blocked layout of oneDNN's kernels; `to_dense`
    gives it back.
    """
    # Without the number of rows oneDNN chooses a layout that serves any.
    return torch.ops.mkldnn._reorder_linear_weight(weight)


def linear(
    vectors: torch.Tensor,
    weight: torch.Tensor,
    bias: Optional[torch.Tensor] = None,
    summand: Optional[torch.Tensor] = None,
) -> torch.Tensor:
    """
    Computes `x Wᵀ`, shape `(rows, inputs)` → `(rows, outputs)`, for at least one row and a weight
    of shape `(outputs, inputs)`, dense or packed. All tensors have the weight's type. The sum of
    the product and `bias` of shape `(outputs,)` or `summand` of shape `(rows, outputs)`, not both,
    is rounded once.

    A row's result is the same, to the bit, for any number of rows, except in bfloat16 on a
    processor with AMX tiles. That is true of oneDNN 3.12 (PyTorch 2.13). oneDNN 3.10 (PyTorch 2.11)
    sums few rows in another order: fewer than 16 with some packed weights, more with others.
    """
    multiply, num_rows = torch.ops.mkldnn._linear_pointwise, len(vectors)
    if num_rows == 1:  # oneDNN's kernel for one row sums in another order.
        vectors = vectors.repeat(2, 1)
        summand = None if summand is None else summand.repeat(2, 1)
    if summand is not None:
        return multiply.binary(vectors, summand, weight, None, "add")[:num_rows]
    # oneDNN compiles and keeps a kernel for each number of rows; for a long text, whose batches all
    # differ in their number of words, they would take hundreds of megabytes.
    missing = padded_rows(num_rows) - num_rows
    if missing:
        vectors = torch.cat([vectors, vectors.new_zeros(missing, vectors.size(1))])
    product: torch.Tensor = multiply(vectors, weight, bias, "none", [], "")
    return product if len(product) == num_rows else product[:num_rows]


def padded_rows(num_rows: int) -> int:
    """
    The number of rows after padding. If `num_rows` is such a number, nothing has to be copied.
    """
    return num_rows if num_rows < MANY_ROWS else num_rows + -num_rows % ROWS_TOGETHER


ROWS_AT_ONCE = 512
"""A large result is computed by so many rows, which are copied while they are in a cache."""


def can_multiply(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor] = None
) -> bool:
    """Whether `multiply` takes these arguments."""
    return (
        left.dtype == torch.float32
        and left.numel() > 0
        and (summand is None or summand.dim() == 1)
        and has_kernels_for(right)
    )


def multiply(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """
    The product of `left`, shape `(rows, inputs)`, and `right`, shape `(inputs, columns)`, plus
    `summand`, shape `(columns,)`; in float32, without gradient. The result may be column-major if
    `left` is.
    """
    if not left.is_contiguous():
        # Here the sum is over a batch's rows, and oneDNN compiles and keeps a kernel for each
        # number of them: PyTorch's product adds the rows beyond a multiple.
        left_over = left.size(1) % ROWS_TOGETHER
        whole = left.size(1) - left_over
        if whole == 0:
            return torch.mm(left, right) if summand is None else torch.addmm(summand, left, right)
        if left_over:
            result = multiply(left[:, :whole], right[:whole], summand)
            return result.addmm_(left[:, whole:], right[whole:])
        # oneDNN needs a row-major `left`. Transposing `right` is cheaper than transposing a larger
        # `left`.
        if summand is None and left.numel() > right.numel():
            return linear(right.t().contiguous(), _dense(left)).t()
    weight = _dense(right.t())
    shape = (left.size(0), right.size(1))
    if shape[0] * shape[1] < LARGE_RESULT:
        return linear(left.contiguous(), weight, summand)
    result = buffer_pool.empty(shape, left.dtype)
    for place, rows in zip(result.split(ROWS_AT_ONCE), left.split(ROWS_AT_ONCE)):
        place.copy_(linear(rows.contiguous(), weight, summand))
    return result


def _dense(matrix: torch.Tensor) -> torch.Tensor:
    """
    Copies a matrix with gaps: without its kernels for dense ones, oneDNN is a hundred times as
    slow.
    """
    is_dense = matrix.is_contiguous() or matrix.t().is_contiguous()
    return matrix if is_dense else matrix.contiguous()


def matmul_into_pool(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """
    `left @ right + summand` on a CPU, in recycled memory, without gradient. Shapes `(rows, inputs)`
    and `(inputs, columns)`; all have one type. The result may be column-major if `left` is.
    """
    if can_multiply(left, right, summand):
        return multiply(left, right, summand)
    result = buffer_pool.empty((left.size(0), right.size(1)), left.dtype)
    if summand is None:
        return torch.mm(left, right, out=result)
    return torch.addmm(summand, left, right, out=result)
