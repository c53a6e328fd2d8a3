"""The product of many vectors with one matrix of weights."""

from typing import Optional

import torch

MANY_ROWS, ROWS_TOGETHER = 128, 16
"""From so many rows on they are filled up to a multiple, which then costs little."""


class WeightProduct:
    """
    Computes `x Wᵀ` for one `W` that is used again and again.

    On a processor for which PyTorch was built with oneDNN, `W` is copied once into the blocked
    layout that oneDNN's kernels read: the few rows of a recurrent step then run at nearly the rate
    of a large product, and a row's result does not depend on how many rows come with it, to the
    bit. Elsewhere it is an ordinary product.

    # Parameters

    weight : `torch.Tensor`
        Shape `(outputs, inputs)`. Later changes to it are not seen.
    dtype : `torch.dtype`
        The precision of the product: vectors are rounded to it, sums are kept in float32.
    num_uses : `int`, optional (default = `None`)
        How often the product will be made, if it is known: for few times copying doesn't pay, and
        oneDNN reads `W` as it lies.
    """

    def __init__(
        self, weight: torch.Tensor, dtype: torch.dtype, num_uses: Optional[int] = None
    ) -> None:
        self.dtype = dtype
        weight = weight.detach().to(dtype)
        self._is_onednns = _knows(weight)
        self._is_packed = self._is_onednns and (num_uses is None or num_uses >= _enough(weight))
        # Without the number of rows oneDNN chooses a layout that serves any.
        self._weight = (
            torch.ops.mkldnn._reorder_linear_weight(weight) if self._is_packed else weight
        )

    def __call__(self, vectors: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(rows, inputs)`.
        bias : `torch.Tensor`, optional (default = `None`)
            Shape `(outputs,)`.

        # Returns

        `torch.Tensor`
            Shape `(rows, outputs)`, of the type `dtype`.
        """
        vectors = vectors.to(self.dtype)
        if bias is not None:
            bias = bias.to(self.dtype)
        if self._is_onednns and len(vectors) > 0:
            product = torch.ops.mkldnn._linear_pointwise
            rows = _fill_up(_never_alone(vectors))
            return product(rows, self._weight, bias, "none", [], "")[: len(vectors)]
        return torch.nn.functional.linear(vectors, self._plain(), bias).to(self.dtype)

    def added_to(self, summand: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        summand : `torch.Tensor`
            Shape `(rows, outputs)`, of the type `dtype`.
        vectors : `torch.Tensor`
            Shape `(rows, inputs)`.

        # Returns

        `torch.Tensor`
            Shape `(rows, outputs)`: the sum, rounded to `dtype` once.
        """
        vectors = vectors.to(self.dtype)
        if self._is_onednns and len(vectors) > 0:
            product = torch.ops.mkldnn._linear_pointwise.binary
            pair = (_never_alone(vectors), _never_alone(summand))
            return product(*pair, self._weight, None, "add")[: len(vectors)]
        return torch.addmm(summand, vectors, self._plain().t()).to(self.dtype)

    def _plain(self) -> torch.Tensor:
        """The weights in an ordinary layout."""
        return self._weight.to_dense() if self._is_packed else self._weight


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


def _enough(weight: torch.Tensor) -> int:
    """
    From how many products on, of some 32 rows, copying `weight` pays. Measured with the released
    models' sizes; copying rows takes a third of the time that copying columns takes.
    """
    return 16 if weight.is_contiguous() else 48


def _knows(weight: torch.Tensor) -> bool:
    """Whether oneDNN has kernels for products with `weight`."""
    if weight.device.type != "cpu" or weight.numel() == 0 or not torch.backends.mkldnn.enabled:
        return False
    if not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32
