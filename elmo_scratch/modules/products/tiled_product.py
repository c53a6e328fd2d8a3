"""The product of many vectors with one matrix of weights, by the processor's tiles."""

import ctypes
from typing import Optional

import torch

from elmo_scratch.native_library import (
    COUNT,
    INSTRUCTIONS,
    LIBRARY,
    POINTER,
    SIZE,
    Instructions,
    functions,
    reaches,
)

TILE = 16
"""Rows of a tile, each of as many pairs of numbers."""

INPUTS_TOGETHER, OUTPUTS_TOGETHER = 2 * TILE, 4 * TILE
"""Sizes are filled up to multiples of these, by zeros."""


class _Product(ctypes.Structure):
    _fields_ = [
        *((name, POINTER) for name in ("rows", "weights", "bias", "summand", "result")),
        *((name, SIZE) for name in ("num_rows", "lanes", "outputs")),
    ]


_DTYPES = (torch.bfloat16,)
_OWN = LIBRARY if INSTRUCTIONS == Instructions.TILES else None
PACK = functions(_OWN, "pack_tiles", _DTYPES, [POINTER, SIZE, SIZE, POINTER, COUNT])
MULTIPLY = functions(_OWN, "multiply_tiles", _DTYPES, [ctypes.POINTER(_Product), COUNT])


class TiledProduct:
    """
    Computes `x Wᵀ` for one `W` in bfloat16 on a processor with tiles. A row's result does not
    depend on how many rows come with it, to the bit: of oneDNN's that is true with other
    instructions, but with these it sums in an order that it chooses by the number of rows.

    # Parameters

    weight : `torch.Tensor`
        Shape `(outputs, inputs)`. Later changes to it are not seen.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        self._shape = weight.shape
        outputs, inputs = weight.shape
        missing = (0, -inputs % INPUTS_TOGETHER, 0, -outputs % OUTPUTS_TOGETHER)
        weight = torch.nn.functional.pad(weight, missing).contiguous()
        self._filled = weight.shape
        self._tiles = torch.empty_like(weight)
        PACK[weight.dtype](
            weight.data_ptr(), *weight.shape, self._tiles.data_ptr(), torch.get_num_threads()
        )

    @staticmethod
    def knows(weight: torch.Tensor) -> bool:
        """
        # Parameters

        weight : `torch.Tensor`
            Shape `(outputs, inputs)`.

        # Returns

        `bool`
            Whether there is compiled code for products with it.
        """
        return weight.dtype in MULTIPLY and weight.numel() > 0 and reaches(weight)

    @staticmethod
    def can_take(*tensors: torch.Tensor) -> bool:
        """
        # Parameters

        tensors : `torch.Tensor`
            Vectors, and what is added.

        # Returns

        `bool`
            Whether compiled code reaches them.
        """
        return reaches(*tensors)

    def __call__(
        self,
        vectors: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        summand: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(rows, inputs)`, in bfloat16.
        bias : `torch.Tensor`, optional (default = `None`)
            Shape `(outputs,)`, in bfloat16.
        summand : `torch.Tensor`, optional (default = `None`)
            Shape `(rows, outputs)`, in bfloat16.

        # Returns

        `torch.Tensor`
            Shape `(rows, outputs)`: the product and what is added to it, rounded once.
        """
        (outputs, inputs), num_rows = self._filled, len(vectors)
        vectors = _filled_up(vectors, inputs)
        others = [None if part is None else _filled_up(part, outputs) for part in (bias, summand)]
        result = vectors.new_empty(num_rows, outputs)
        places = [None if part is None else part.data_ptr() for part in others]
        product = _Product(
            vectors.data_ptr(),
            self._tiles.data_ptr(),
            *places,
            result.data_ptr(),
            num_rows,
            inputs // 2,
            outputs,
        )
        MULTIPLY[vectors.dtype](ctypes.byref(product), torch.get_num_threads())
        return result[:, : self._shape[0]]

    def unpacked(self) -> torch.Tensor:
        """The weights in an ordinary layout."""
        outputs, inputs = self._filled
        # Two tiles beside each other, each with a row for a pair of inputs.
        tiles = self._tiles.view(-1, inputs // INPUTS_TOGETHER, 2, TILE, TILE, 2)
        weight = tiles.permute(0, 2, 4, 1, 3, 5).reshape(outputs, inputs)
        return weight[: self._shape[0], : self._shape[1]]


def _filled_up(numbers: torch.Tensor, size: int) -> torch.Tensor:
    """Side by side, with zeros up to `size` in the last dimension."""
    missing = size - numbers.size(-1)
    return torch.nn.functional.pad(numbers, (0, missing)) if missing else numbers.contiguous()
