"""Products in bfloat16 by AMX."""

import ctypes
from typing import Any, Optional, Tuple

import torch

from elmo_scratch.kernels.library import (
    COUNT,
    INSTRUCTIONS,
    LIBRARY,
    POINTER,
    AmxProduct,
    AmxWeights,
    Instructions,
    functions,
    is_plain,
)
from elmo_scratch.kernels.memory import LARGE_RESULT, buffer_pool

_OWN = LIBRARY if INSTRUCTIONS == Instructions.TILES else None

TILE = 16
"""Rows of a tile; a row holds as many pairs of numbers."""

INPUTS_TOGETHER, OUTPUTS_TOGETHER = 2 * TILE, 4 * TILE
"""Sizes are padded with zeros to multiples of these."""

MANY_PANELS = 16
"""From so many panels of outputs, weights for a single product are not packed."""

FEW_NUMBERS = 2**20
"""Weights for a single product are packed if vectors have more numbers than the caches hold."""

DTYPES = (torch.float32, torch.bfloat16)
"""The types of weights that are accepted; float32 is rounded."""


_PRODUCT, _WEIGHTS = ctypes.POINTER(AmxProduct), ctypes.POINTER(AmxWeights)
PACK = functions(_OWN, "pack_tiles", DTYPES, [_WEIGHTS, POINTER, COUNT])
MULTIPLY = functions(_OWN, "multiply_tiles", DTYPES[1:], [_PRODUCT, COUNT])
MULTIPLY_ONCE = functions(_OWN, "multiply_once", DTYPES, [_PRODUCT, _WEIGHTS, COUNT])


class AmxLinear:
    """
    Computes `x Wᵀ` for one `W` in bfloat16, on a processor with AMX tiles. A row's result is the
    same, to the bit, for any number of rows. oneDNN's is too with other instruction sets, but with
    AMX it chooses the order of its sums by the number of rows.

    `weight` has the shape `(outputs, inputs)`, in float32 or bfloat16. Later changes to it are not
    seen, unless `is_for_one` says that only one product will be made.
    """

    def __init__(self, weight: torch.Tensor, is_for_one: bool = False) -> None:
        self._shape = weight.shape
        outputs, inputs = (
            size + -size % together
            for size, together in zip(weight.shape, (OUTPUTS_TOGETHER, INPUTS_TOGETHER))
        )
        self._padded_shape = (outputs, inputs)
        self._is_turned = weight.t().is_contiguous()
        self._weight: Optional[torch.Tensor] = weight if self._is_turned else weight.contiguous()
        self._tiles: Optional[torch.Tensor] = None
        if not is_for_one or outputs < MANY_PANELS * OUTPUTS_TOGETHER:
            self._tiles = self._packed()
            self._weight = None

    @staticmethod
    def knows(weight: torch.Tensor) -> bool:
        """Whether there is compiled code for products with a weight."""
        return weight.dtype in PACK and weight.numel() > 0 and is_plain(weight, on="cpu")

    def can_take(
        self,
        vectors: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        summand: Optional[torch.Tensor] = None,
    ) -> bool:
        """
        Whether compiled code can be called with these arguments: it doesn't check their shapes,
        types and memory. PyTorch takes what doesn't fit, and reports errors.
        """
        outputs, inputs = self._shape
        expected = [
            (vectors, (len(vectors), inputs)),
            (bias, (outputs,)),
            (summand, (len(vectors), outputs)),
        ]
        return all(
            part is None
            or (part.shape == shape and part.dtype == torch.bfloat16 and is_plain(part, on="cpu"))
            for part, shape in expected
        )

    def __call__(
        self,
        vectors: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        summand: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """
        Shape `(rows, inputs)` → `(rows, outputs)`, in bfloat16. The sum of the product, `bias` of
        shape `(outputs,)` and `summand` of shape `(rows, outputs)` is rounded once.
        """
        (outputs, inputs), num_rows = self._padded_shape, len(vectors)
        vectors = _pad(vectors, inputs)
        others = [None if part is None else _pad(part, outputs) for part in (bias, summand)]
        if self._tiles is None and vectors.numel() > FEW_NUMBERS:
            self._tiles = self._packed()
        shape = (num_rows, outputs)
        is_large = num_rows * outputs >= LARGE_RESULT
        result = buffer_pool.empty(shape, vectors.dtype) if is_large else vectors.new_empty(shape)
        tensors = [vectors, self._tiles, *others, result]
        places = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
        product = ctypes.byref(AmxProduct(*places, num_rows, inputs, outputs))
        if self._tiles is not None:
            MULTIPLY[vectors.dtype](product, torch.get_num_threads())
        else:
            dtype, weights = self._weights()
            MULTIPLY_ONCE[dtype](product, weights, torch.get_num_threads())
        return result[:, : self._shape[0]]

    def unpacked(self) -> torch.Tensor:
        """The weights in an ordinary layout."""
        outputs, inputs = self._padded_shape
        tiles = self._packed() if self._tiles is None else self._tiles
        # Two tiles beside each other, each with a row for a pair of inputs.
        tiles = tiles.view(-1, inputs // INPUTS_TOGETHER, 2, TILE, TILE, 2)
        weight = tiles.permute(0, 2, 4, 1, 3, 5).reshape(outputs, inputs)
        return weight[: self._shape[0], : self._shape[1]]

    def _packed(self) -> torch.Tensor:
        """The weights in tiles."""
        tiles = buffer_pool.empty(self._padded_shape, torch.bfloat16)
        dtype, weights = self._weights()
        PACK[dtype](weights, tiles.data_ptr(), torch.get_num_threads())
        return tiles

    def _weights(self) -> Tuple[torch.dtype, Any]:
        """The type of the weights, and the struct that describes them."""
        assert self._weight is not None
        place = self._weight.data_ptr()
        return self._weight.dtype, ctypes.byref(AmxWeights(place, *self._shape, self._is_turned))


def _pad(numbers: torch.Tensor, size: int) -> torch.Tensor:
    """Pads the last dimension with zeros up to `size`; the result is contiguous."""
    missing = size - numbers.size(-1)
    return torch.nn.functional.pad(numbers, (0, missing)) if missing else numbers.contiguous()
