"""Products of many vectors with one weight matrix, packed once."""

from functools import lru_cache
from typing import Optional, Union

import torch

from elmo_scratch.kernels.linear.amx import AmxLinear
from elmo_scratch.kernels.linear.onednn import OneDnnProduct

OUTPUTS_TRIED, INPUTS_TRIED = 512, 2048
"""The product that `rows_are_independent` tries: large enough for every way of splitting sums."""

ROWS_TRIED = (1, 2, 3, 5, 16, 31, 67, 70, 130)


class PackedLinear:
    """
    Computes `x Wᵀ` for one `W`, shape `(outputs, inputs)`, that is used again and again. Vectors
    are rounded to `dtype`, sums are kept in float32. Later changes to `W` are not seen.

    On a CPU `W` is packed once for fast kernels, `AmxLinear`'s or `OneDnnProduct`'s: the few rows
    of a recurrent step then run at nearly the rate of a large product. Without such kernels it is
    an ordinary product. `rows_are_independent` says whether a row's result is the same, to the bit,
    for any number of rows.

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
        self._weight: Optional[torch.Tensor] = None
        self._product: Union[AmxLinear, OneDnnProduct, None] = None
        if dtype == torch.bfloat16 and (pays or num_uses == 1) and AmxLinear.knows(weight):
            self._product = AmxLinear(weight, is_for_one=num_uses == 1)
            return
        weight = weight.to(dtype)
        if OneDnnProduct.knows(weight):
            self._product = OneDnnProduct(weight, pays)
        else:
            self._weight = weight

    def __call__(self, vectors: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        """
        Shape `(rows, inputs)`, with a bias of shape `(outputs,)`, → `(rows, outputs)`, of the type
        `dtype`.
        """
        vectors = vectors.to(self.dtype)
        if bias is not None:
            bias = bias.to(self.dtype)
        if self._product is not None and self._product.can_take(vectors, bias):
            return self._product(vectors, bias)
        return torch.nn.functional.linear(vectors, self._plain(), bias).to(self.dtype)

    def added_to(self, summand: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """
        `summand`, shape `(rows, outputs)` and of type `dtype`, plus the product with `vectors`,
        shape `(rows, inputs)`; the sum is rounded to `dtype` once.
        """
        vectors = vectors.to(self.dtype)
        if self._product is not None and self._product.can_take(vectors, summand=summand):
            return self._product(vectors, summand=summand)
        return torch.addmm(summand, vectors, self._plain().t()).to(self.dtype)

    def _plain(self) -> torch.Tensor:
        """The weights in an ordinary layout."""
        if self._product is not None:
            return self._product.unpacked()
        assert self._weight is not None
        return self._weight


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
    if packed._product is None or once._product is None:
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
