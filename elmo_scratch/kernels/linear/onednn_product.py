"""The product of many vectors with one matrix of weights, by oneDNN."""

from functools import lru_cache
from typing import Optional

import torch

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
