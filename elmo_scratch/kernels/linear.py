"""A linear layer, fast with frozen weights, in a chosen precision."""

from functools import lru_cache
from typing import Any, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels import onednn
from elmo_scratch.kernels.amx import AmxLinear
from elmo_scratch.kernels.library import is_plain
from elmo_scratch.kernels.memory import FrozenWeightCache
from elmo_scratch.kernels.onednn import matmul_into_pool
from elmo_scratch.kernels.precision import MixedPrecision
from elmo_scratch.kernels.weight_gradients import weight_gradients


class Linear(MixedPrecision):
    """
    `x Wᵀ + b`, like `torch.nn.Linear`, but fast with frozen weights and able to multiply in less
    precision.

    # Parameters

    input_dim, output_dim : `int`
        Sizes of the vectors.
    """

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(output_dim, input_dim))
        self.bias = torch.nn.Parameter(torch.zeros(output_dim))
        torch.nn.init.xavier_uniform_(self.weight)
        self._frozen = FrozenWeightCache[PackedLinear]()

    def forward(
        self, vectors: torch.Tensor, output_dtype: Optional[torch.dtype] = None
    ) -> torch.Tensor:
        """
        Shape `(rows, input_dim)` → `(rows, output_dim)`, of the type `output_dtype`, or of the type
        of `vectors` by default.
        """
        dtype = self.matmul_dtype_for(self.weight)
        graph = (vectors, self.weight, self.bias)
        is_trained = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in graph)
        if is_trained and self._is_trained_by_us(dtype) and is_plain(*graph, on="cpu"):
            products = TrainedLinear.apply(vectors.to(dtype), self.weight, self.bias, dtype)
        elif is_trained or self.weight.device.type != "cpu":
            # Rounding weights on a GPU is faster than checking whether they have changed.
            products = torch.nn.functional.linear(
                vectors.to(dtype), self.weight.to(dtype), self.bias.to(dtype)
            )
        else:
            product = self._frozen.of(
                [self.weight], dtype, lambda: PackedLinear(self.weight, dtype)
            )
            products = product(vectors, self.bias)
        return products.to(output_dtype or vectors.dtype)

    def forget_product(self) -> None:
        """Drops the packed copy of frozen weights."""
        self._frozen.forget()

    def _apply(self, *arguments: Any, **settings: Any) -> "Linear":
        # The copy would keep the weight's old memory in use.
        self.forget_product()
        return super()._apply(*arguments, **settings)

    def _is_trained_by_us(self, dtype: torch.dtype) -> bool:
        """
        Whether products of this precision use `TrainedLinear`: if they are rounded, or in float32.
        In other types PyTorch's product is used, which can be differentiated twice.
        """
        if dtype != self.weight.dtype:
            return True
        return dtype == torch.float32 and not torch.is_autocast_enabled("cpu")


class TrainedLinear(torch.autograd.Function):
    """
    `x Wᵀ + b`, with numbers rounded first if the precision of products is not that of the weights.
    Large results, including weight gradients, are in recycled memory.
    """

    @staticmethod
    def forward(
        ctx: Any,
        vectors: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        """
        Shapes `(rows, input_dim)`, `(output_dim, input_dim)` and `(output_dim,)` →
        `(rows, output_dim)`. `vectors` and the result are of the type `dtype`, the precision of
        products.
        """
        ctx.save_for_backward(vectors, weight)
        if dtype == weight.dtype:
            return matmul_into_pool(vectors, weight.t(), bias)
        return PackedLinear(weight, dtype, num_uses=1)(vectors, bias)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradients: torch.Tensor
    ) -> Tuple[Optional[torch.Tensor], Optional[torch.Tensor], Optional[torch.Tensor], None]:
        """The gradients of vectors, weights and bias."""
        vectors, weight = ctx.saved_tensors
        needed = ctx.needs_input_grad
        made = weight_gradients(gradients, [vectors] if needed[1] else [], weight.dtype)
        return (
            _of_vectors(gradients, weight) if needed[0] else None,
            made.weights[0] if needed[1] else None,
            made.bias.to(weight.dtype) if needed[2] else None,
            None,
        )


def _of_vectors(gradients: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """The gradient of the vectors, shape `(rows, input_dim)`, of the type of `gradients`."""
    if gradients.dtype == weight.dtype:
        return matmul_into_pool(gradients, weight)
    return PackedLinear(weight.t(), gradients.dtype, num_uses=1)(gradients)


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
