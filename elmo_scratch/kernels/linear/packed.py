"""Products of many vectors with one weight matrix, packed once."""

from functools import lru_cache
from typing import Optional

import torch

from elmo_scratch.kernels.linear import onednn
from elmo_scratch.kernels.linear.amx import AmxLinear

OUTPUTS_TRIED, INPUTS_TRIED = 512, 2048
"""The product that `rows_are_independent` tries: large enough for every way of splitting sums."""

ROWS_TRIED = (1, 2, 3, 5, 16, 31, 67, 70, 130)


class PackedLinear:
    """
    Computes `x Wᵀ` for one `W`, shape `(outputs, inputs)`, that is used again and again. Vectors
    are rounded to `dtype`, sums are kept in float32. Later changes to `W` are not seen.

    On a CPU `W` is packed once for fast kernels, AMX's or oneDNN's: the few rows of a recurrent
    step then run at nearly the rate of a large product. Without such kernels it is an ordinary
    product. `rows_are_independent` says whether a row's result is the same, to the bit, for any
    number of rows.

    `num_uses` is the number of products that will be made, if known: for few products packing
    doesn't pay, and oneDNN reads `W` directly. In bfloat16, on a processor with AMX tiles, a row's
    result may then depend on the other rows, within rounding.
    """

    def __init__(
        self, weight: torch.Tensor, dtype: torch.dtype, num_uses: Optional[int] = None
    ) -> None:
        self.dtype = dtype
        weight = weight.detach()
        pays = num_uses is None or num_uses >= _enough(weight)
        self._amx: Optional[AmxLinear] = None
        self._weight: Optional[torch.Tensor] = None
        self._is_by_onednn = False
        if dtype == torch.bfloat16 and (pays or num_uses == 1) and AmxLinear.knows(weight):
            self._amx = AmxLinear(weight, is_for_one=num_uses == 1)
            return
        self._weight = weight.to(dtype)
        self._is_by_onednn = onednn.has_kernels_for(self._weight)
        if self._is_by_onednn and pays:
            self._weight = onednn.pack(self._weight)

    def __call__(
        self,
        vectors: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        *,
        summand: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """
        Shape `(rows, inputs)` → `(rows, outputs)`, of the type `dtype`. A `bias` of shape
        `(outputs,)`, or a `summand` of shape `(rows, outputs)` and of type `dtype`, is added, not
        both; the sum is rounded once.
        """
        vectors = vectors.to(self.dtype)
        bias = None if bias is None else bias.to(self.dtype)
        if self._amx is not None and self._amx.can_take(vectors, bias, summand):
            return self._amx(vectors, bias, summand)
        if self._is_by_onednn and len(vectors) > 0:
            assert self._weight is not None
            return onednn.linear(vectors, self._weight, bias, summand)
        weight = self._weight if self._amx is None else self._amx.unpacked()
        assert weight is not None
        if weight.is_mkldnn:
            weight = weight.to_dense()
        if summand is None:
            return torch.nn.functional.linear(vectors, weight, bias).to(self.dtype)
        return torch.addmm(summand, vectors, weight.t()).to(self.dtype)

    @property
    def is_fast(self) -> bool:
        """Whether there are kernels for it, AMX's or oneDNN's."""
        return self._amx is not None or self._is_by_onednn


@lru_cache(maxsize=None)
def rows_are_independent(dtype: torch.dtype) -> bool:
    """
    Whether this machine gives a row the same result, to the bit, however many rows are multiplied
    with it. The package's promises "to the bit" about texts read in other batches hold if this is
    true; otherwise they hold within rounding.

    The answer is measured once, in some milliseconds: it depends on the instruction set, on limits
    to the instructions that the libraries may use, and on the version of oneDNN.

    # Parameters

    dtype : `torch.dtype`
        The precision of products.
    """
    packed, once = (
        PackedLinear(_irregular(OUTPUTS_TRIED, INPUTS_TRIED), dtype, uses) for uses in (None, 1)
    )
    if not (packed.is_fast and once.is_fast):
        return False
    vectors = _irregular(ROWS_TRIED[-1], INPUTS_TRIED)
    with torch.inference_mode(), torch.autocast("cpu", enabled=False):
        for product in (packed, once):
            whole = product(vectors)
            if not all(torch.equal(product(vectors[:rows]), whole[:rows]) for rows in ROWS_TRIED):
                return False
    return True


def _irregular(rows: int, columns: int) -> torch.Tensor:
    """Numbers in `[-1, 1]` whose sums are rounded differently in another order."""
    places = torch.arange(rows * columns, dtype=torch.float64, device="cpu")
    return places.mul_(0.7).sin_().float().view(rows, columns)


def _enough(weight: torch.Tensor) -> int:
    """
    The number of products, of about 32 rows, from which packing `weight` pays. Measured with the
    sizes of the released models; packing rows takes a third of the time of packing columns.
    """
    return 16 if weight.is_contiguous() else 48
