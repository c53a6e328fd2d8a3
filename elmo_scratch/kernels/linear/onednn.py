"""Products by oneDNN, packed or as the weights lie, and products into pooled memory."""

from functools import lru_cache
from typing import Optional

import torch

from elmo_scratch.kernels.memory import LARGE_RESULT, buffer_pool

MANY_ROWS, ROWS_TOGETHER = 128, 16
"""From so many rows on they are filled up to a multiple, which then costs little."""


class OneDnnProduct:
    """
    Computes `x Wᵀ` for one `W`, where PyTorch was built with oneDNN. But for bfloat16 on a
    processor with tiles a row's result does not depend on how many rows come with it, to the bit.
    That is true of oneDNN 3.12, which PyTorch 2.13 has. That of PyTorch 2.11, 3.10, sums few rows
    in another order: fewer than 16 with some packed weights, more with others.

    # Parameters

    weight : `torch.Tensor`
        Shape `(outputs, inputs)`.
    is_packed : `bool`
        Whether `weight` is copied into the blocked layout that oneDNN's kernels read; otherwise it
        is read as it lies.
    """

    def __init__(self, weight: torch.Tensor, is_packed: bool) -> None:
        self._is_packed = is_packed
        # Without the number of rows oneDNN chooses a layout that serves any.
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight) if is_packed else weight

    @staticmethod
    def knows(weight: torch.Tensor) -> bool:
        """
        # Parameters

        weight : `torch.Tensor`
            Shape `(outputs, inputs)`.

        # Returns

        `bool`
            Whether oneDNN has kernels for products with it.
        """
        if weight.device.type != "cpu" or weight.numel() == 0 or not torch.backends.mkldnn.enabled:
            return False
        return weight.dtype in (torch.float32, torch.bfloat16) and _has_kernels(weight.dtype)

    def can_take(
        self,
        vectors: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        summand: Optional[torch.Tensor] = None,
    ) -> bool:
        """
        # Parameters

        vectors, bias, summand
            As in a call.

        # Returns

        `bool`
            Whether there are any rows.
        """
        return len(vectors) > 0

    def __call__(
        self,
        vectors: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        summand: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(rows, inputs)`, of the type of the weights.
        bias : `torch.Tensor`, optional (default = `None`)
            Shape `(outputs,)`, of that type. Without a summand.
        summand : `torch.Tensor`, optional (default = `None`)
            Shape `(rows, outputs)`, of that type.

        # Returns

        `torch.Tensor`
            Shape `(rows, outputs)`: the product and what is added to it, rounded once.
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
    Whether this processor has the instructions for oneDNN's kernels in `dtype`. A product is tried:
    oneDNN may be held to fewer instructions (`ONEDNN_MAX_CPU_ISA`) than PyTorch asks the processor
    for, and where it lacks a kernel it raises an error.
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
    """With how many rows a product of `num_rows` is made: with no others nothing is copied."""
    return num_rows if num_rows < MANY_ROWS else num_rows + -num_rows % ROWS_TOGETHER


def _never_alone(rows: torch.Tensor) -> torch.Tensor:
    """A single row twice: for one alone oneDNN has a kernel that sums in another order."""
    return rows.repeat(2, 1) if len(rows) == 1 else rows


def _fill_up(rows: torch.Tensor) -> torch.Tensor:
    """
    Many rows to a multiple of `ROWS_TOGETHER`. oneDNN compiles a kernel for each number of rows,
    and keeps it: without this a long text, whose batches all have other numbers of words, would
    take hundreds of megabytes for them.
    """
    missing = filled_up(len(rows)) - len(rows)
    return torch.cat([rows, rows.new_zeros(missing, rows.size(1))]) if missing else rows


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
    result = buffer_pool.empty(shape, left.dtype)
    for place, rows in zip(result.split(ROWS_AT_ONCE), left.split(ROWS_AT_ONCE)):
        place.copy_(product(rows.contiguous(), summand))
    return result


def _dense(matrix: torch.Tensor) -> torch.Tensor:
    """Without gaps: those make oneDNN multiply without its kernels, a hundred times as slow."""
    is_dense = matrix.is_contiguous() or matrix.t().is_contiguous()
    return matrix if is_dense else matrix.contiguous()


def matmul_into_pool(
    left: torch.Tensor, right: torch.Tensor, summand: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """
    # Parameters

    left : `torch.Tensor`
        Shape `(rows, inputs)`, on a processor, without a gradient.
    right : `torch.Tensor`
        Shape `(inputs, columns)`, of that type.
    summand : `torch.Tensor`, optional (default = `None`)
        Of that type, and of a shape that can be added to the product.

    # Returns

    `torch.Tensor`
        Shape `(rows, columns)`: the product and what is added to it. The numbers of a column may
        lie side by side, if those of `left` do.
    """
    if can_multiply(left, right, summand):
        return multiply(left, right, summand)
    result = buffer_pool.empty((left.size(0), right.size(1)), left.dtype)
    if summand is None:
        return torch.mm(left, right, out=result)
    return torch.addmm(summand, left, right, out=result)
