"""Products by oneDNN, with or without packing, and products into recycled memory."""

from functools import lru_cache
from typing import Optional

import torch

from elmo_scratch.kernels.memory import LARGE_RESULT, buffer_pool

MANY_ROWS, ROWS_TOGETHER = 128, 16
"""From so many rows they are padded to a multiple, which then costs little."""


class OneDnnProduct:
    """
    Computes `x Wᵀ` for one `W`, if PyTorch was built with oneDNN. A row's result is the same, to
    the bit, for any number of rows, except in bfloat16 on a processor with AMX tiles. That is true
    of oneDNN 3.12 (PyTorch 2.13). oneDNN 3.10 (PyTorch 2.11) sums few rows in another order: fewer
    than 16 with some packed weights, more with others.

    `weight` has the shape `(outputs, inputs)`. With `is_packed` it is copied to the blocked layout
    of oneDNN's kernels; otherwise they read it directly.
    """

    def __init__(self, weight: torch.Tensor, is_packed: bool) -> None:
        self._is_packed = is_packed
        # Without the number of rows oneDNN chooses a layout that serves any.
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight) if is_packed else weight

    @staticmethod
    def knows(weight: torch.Tensor) -> bool:
        """Whether oneDNN has kernels for products with a weight."""
        if weight.device.type != "cpu" or weight.numel() == 0 or not torch.backends.mkldnn.enabled:
            return False
        return weight.dtype in (torch.float32, torch.bfloat16) and _has_kernels(weight.dtype)

    def can_take(
        self,
        vectors: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        summand: Optional[torch.Tensor] = None,
    ) -> bool:
        """Whether there are any rows."""
        return len(vectors) > 0

    def __call__(
        self,
        vectors: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        summand: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """
        Shape `(rows, inputs)` → `(rows, outputs)`; all tensors have the weights' type. The sum of
        the product and `bias` of shape `(outputs,)` or `summand` of shape `(rows, outputs)`, not
        both, is rounded once.
        """
        multiply = torch.ops.mkldnn._linear_pointwise
        if summand is not None:
            pair = (_never_alone(vectors), _never_alone(summand))
            return multiply.binary(*pair, self._weight, None, "add")[: len(vectors)]
        rows = _fill_up(_never_alone(vectors))
        return multiply(rows, self._weight, bias, "none", [], "")[: len(vectors)]

    def unpacked(self) -> torch.Tensor:
        """The weights in an ordinary layout."""
        return self._weight.to_dense() if self._is_packed else self._weight


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
            OneDnnProduct(ones, is_packed=True)(ones)
        except RuntimeError:
            return False
    return True


def filled_up(num_rows: int) -> int:
    """
    The number of rows after padding. If `num_rows` is such a number, nothing has to be copied.
    """
    return num_rows if num_rows < MANY_ROWS else num_rows + -num_rows % ROWS_TOGETHER


def _never_alone(rows: torch.Tensor) -> torch.Tensor:
    """Doubles a single row: oneDNN's kernel for one row sums in another order."""
    return rows.repeat(2, 1) if len(rows) == 1 else rows


def _fill_up(rows: torch.Tensor) -> torch.Tensor:
    """
    Pads many rows to a multiple of `ROWS_TOGETHER`. oneDNN compiles and keeps a kernel for each
    number of rows; for a long text, whose batches all differ in their number of words, they would
    take hundreds of megabytes.
    """
    missing = filled_up(len(rows)) - len(rows)
    return torch.cat([rows, rows.new_zeros(missing, rows.size(1))]) if missing else rows


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
        and OneDnnProduct.knows(right)
    )


def multiply(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """
    The product of `left`, shape `(rows, inputs)`, and `right`, shape `(inputs, columns)`, plus
    `summand`, shape `(columns,)`; in float32, without gradient. The result may be column-major if
    `left` is.
    """
    if left.is_contiguous():
        return _product(left, right, summand)
    # Here the sum is over a batch's rows, and oneDNN compiles and keeps a kernel for each number of
    # them: PyTorch's product adds the rows beyond a multiple.
    whole = left.size(1) - left.size(1) % ROWS_TOGETHER
    if whole == 0:
        return torch.mm(left, right) if summand is None else torch.addmm(summand, left, right)
    result = _product(left[:, :whole], right[:whole], summand)
    return result if whole == left.size(1) else result.addmm_(left[:, whole:], right[whole:])


def _product(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor]
) -> torch.Tensor:
    """The product, by a kernel for this number of inputs."""
    shape = (left.size(0), right.size(1))
    size = shape[0] * shape[1]
    # oneDNN needs a row-major `left`. Transposing `right` is cheaper than transposing a larger
    # `left`.
    if summand is None and not left.is_contiguous() and left.numel() > right.numel():
        return OneDnnProduct(_dense(left), is_packed=False)(right.t().contiguous()).t()
    product = OneDnnProduct(_dense(right.t()), is_packed=False)
    if size < LARGE_RESULT:
        return product(left.contiguous(), summand)
    result = buffer_pool.empty(shape, left.dtype)
    for place, rows in zip(result.split(ROWS_AT_ONCE), left.split(ROWS_AT_ONCE)):
        place.copy_(product(rows.contiguous(), summand))
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
