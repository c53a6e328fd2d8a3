"""The product of many vectors with one matrix of weights."""

from typing import Optional, Union

import torch

from elmo_scratch.modules.products.onednn_product import OneDnnProduct
from elmo_scratch.modules.products.tiled_product import TiledProduct


class WeightProduct:
    """
    Computes `x Wᵀ` for one `W` that is used again and again.

    On a processor `W` is copied once into a layout that fast kernels read, `TiledProduct`'s or
    `OneDnnProduct`'s: the few rows of a recurrent step then run at nearly the rate of a large
    product, and a row's result does not depend on how many rows come with it, to the bit. Where
    there are none it is an ordinary product.

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
        self._product: Union[TiledProduct, OneDnnProduct, None] = None
        if dtype == torch.bfloat16 and (pays or num_uses == 1) and TiledProduct.knows(weight):
            self._product = TiledProduct(weight, is_for_one=num_uses == 1)
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


def _enough(weight: torch.Tensor) -> int:
    """
    From how many products on, of some 32 rows, copying `weight` pays. Measured with the released
    models' sizes; copying rows takes a third of the time that copying columns takes.
    """
    return 16 if weight.is_contiguous() else 48
