"""The product of many vectors with one matrix of weights, packed once."""

from functools import lru_cache
from typing import Optional, Union

import torch

from elmo_scratch.kernels.linear.amx import AmxLinear
from elmo_scratch.kernels.linear.onednn import OneDnnProduct

OUTPUTS_TRIED, INPUTS_TRIED = 512, 2048
"""A product by which `rows_are_independent` tells: large enough for every way of splitting sums."""

ROWS_TRIED = (1, 2, 3, 5, 16, 31, 67, 70, 130)


class PackedLinear:
    """
    Computes `x Wᵀ` for one `W` that is used again and again.

    On a processor `W` is copied once into a layout that fast kernels read, `AmxLinear`'s or
    `OneDnnProduct`'s: the few rows of a recurrent step then run at nearly the rate of a large
    product. Where there are none it is an ordinary product. `rows_are_independent` says whether a
    row's result is the same, to the bit, however many rows come with it.

    # Parameters

    weight : `torch.Tensor`
        Shape `(outputs, inputs)`. Later changes to it are not seen.
    dtype : `torch.dtype`
        The precision of the product: vectors are rounded to it, sums are kept in float32.
    num_uses : `int`, optional (default = `None`)
        How often the product will be made, if it is known: for few times copying doesn't pay, and
        oneDNN reads `W` as it lies. In bfloat16, on a processor with tiles, a row's result may then
        depend on others within rounding.
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
        if self._product is not None and self._product.can_take(vectors, bias):
            return self._product(vectors, bias)
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
    with it. What the package promises "to the bit" about texts read in other batches holds where
    this is true; elsewhere it holds within rounding.

    The answer is measured once, in some milliseconds: it depends on the instruction set, on how
    many of its instructions the libraries may use, and on the version of oneDNN.

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
    """Numbers in `[-1, 1]`, of which sums in another order are rounded differently."""
    places = torch.arange(rows * columns, dtype=torch.float64, device="cpu")
    return places.mul_(0.7).sin_().float().view(rows, columns)


def _enough(weight: torch.Tensor) -> int:
    """
    From how many products on, of some 32 rows, copying `weight` pays. Measured with the released
    models' sizes; copying rows takes a third of the time that copying columns takes.
    """
    return 16 if weight.is_contiguous() else 48
