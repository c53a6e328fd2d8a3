"""The precision of matrix products."""

from abc import ABC, abstractmethod
from typing import Any, Optional

import torch

from elmo_scratch.modules.products.bfloat16_speed import bfloat16_is_slow

MATMUL_DTYPES = {"float32": None, "bfloat16": torch.bfloat16}
"""The precisions a config can ask for, by name."""


class MixedPrecision(torch.nn.Module, ABC):
    """
    A module whose matrix products may run in less precision than its weights have. Its parameters,
    its outputs and whatever it accumulates keep the type of the weights. Abstract.
    """

    _matmul_dtype: Optional[torch.dtype] = None

    @abstractmethod
    def forward(self, *arguments: Any) -> Any:
        """As the module says."""

    def matmul_dtype_for(self, weight: torch.Tensor) -> torch.dtype:
        """
        The type in which products with `weight` run: the weights' own if none was asked for, or if
        on this processor the one asked for would take longer.
        """
        if self._matmul_dtype is None or (weight.device.type == "cpu" and bfloat16_is_slow()):
            return weight.dtype
        return self._matmul_dtype

    @staticmethod
    def set_everywhere(module: torch.nn.Module, name: str) -> None:
        """
        Sets the precision of all products within `module`.

        # Parameters

        module : `torch.nn.Module`
            Any module.
        name : `str`
            A key of `MATMUL_DTYPES`.

        # Raises

        ValueError
            If there is no such precision.
        """
        if name not in MATMUL_DTYPES:
            raise ValueError(
                f"expected a `matmul_dtype` among {', '.join(MATMUL_DTYPES)}, but got {name!r}"
            )
        for part in module.modules():
            if isinstance(part, MixedPrecision):
                part._matmul_dtype = MATMUL_DTYPES[name]
