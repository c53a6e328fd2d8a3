"""The precision of matrix products."""

import logging
from abc import ABC, abstractmethod
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, ContextManager, Optional, Sequence

import torch

from elmo_scratch.kernels.bfloat16_speed import BFLOAT16

logger = logging.getLogger(__name__)

MATMUL_DTYPES = {"float32": None, "bfloat16": torch.bfloat16}
"""The precisions a config can ask for, by name."""

FIRST_WITH_BFLOAT16 = (8, 0)
"""The compute capability of the first GPUs that multiply in it."""


class MixedPrecision(torch.nn.Module, ABC):
    """
    A module whose matrix products may run in less precision than its weights have. Its parameters,
    its outputs and whatever it accumulates keep the type of the weights. Abstract.
    """

    rounds_in_evaluation: bool = True
    """Whether products run in less precision in evaluation too. What is measured may not."""

    _matmul_dtype: Optional[torch.dtype] = None

    @abstractmethod
    def forward(self, *arguments: Any) -> Any:
        """As the module says."""

    def matmul_dtype_for(self, weight: torch.Tensor) -> torch.dtype:
        """
        The type in which products with `weight` run: the weights' own if none was asked for, if on
        this processor the one asked for would take longer, or in an evaluation that is not rounded.
        """
        if self._matmul_dtype is None or not _pays(weight.device):
            return weight.dtype
        if not self.training and not self.rounds_in_evaluation:
            return weight.dtype
        return self._matmul_dtype

    @staticmethod
    def used(name: str, device: torch.device) -> str:
        """
        # Parameters

        name : `str`
            The precision that is asked for, a key of `MATMUL_DTYPES`.
        device : `torch.device`
            Where the products run.

        # Returns

        `str`
            The one in which they do.
        """
        return name if MATMUL_DTYPES[name] is None or _pays(device) else "float32"

    @staticmethod
    def is_asked_for(module: torch.nn.Module) -> bool:
        """Whether products within `module` shall run in less precision than its weights have."""
        return any(
            isinstance(part, MixedPrecision) and part._matmul_dtype is not None
            for part in module.modules()
        )

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


def precision_of(weights: Sequence[torch.Tensor]) -> torch.dtype:
    """
    # Returns

    `torch.dtype`
        To what vectors of these weights are rounded on the way: that of the weights, or that of
        `torch.autocast` where it is on.
    """
    kind = weights[0].device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return weights[0].dtype


def without_autocast(device: torch.device) -> ContextManager[Any]:
    """
    # Returns

    `ContextManager`
        In its block `torch.autocast` rounds nothing on `device`.
    """
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def _pays(device: torch.device) -> bool:
    """Whether products in less precision are faster there."""
    if device.type == "cuda":
        return _has_bfloat16(device)
    return device.type != "cpu" or not BFLOAT16.is_slow()


@lru_cache(maxsize=None)
def _has_bfloat16(device: torch.device) -> bool:
    """Whether a GPU multiplies in bfloat16 itself; PyTorch lets older ones imitate it, slowly."""
    if torch.cuda.get_device_capability(device) >= FIRST_WITH_BFLOAT16:
        return True
    logger.warning(
        "The GPU %s has no instructions for bfloat16: products that are asked for in bfloat16 run "
        'in float32. `matmul_dtype: "float32"` says the same.',
        torch.cuda.get_device_name(device),
    )
    return False
