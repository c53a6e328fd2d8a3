"""The precision of matrix products."""

import logging
import time
from abc import ABC, abstractmethod
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, ContextManager, List, Optional, Sequence

import torch

logger = logging.getLogger(__name__)

ROWS, INPUTS, OUTPUTS = 64, 512, 1024
"""A product like those of an LSTM's step, small enough for a processor that takes long."""

NUM_TRIALS = 5

CLEARLY = 1.2
"""So many times as fast float32 must be: near a tie the answer would change from run to run."""


class Bfloat16Speed:
    """
    Whether products on the CPU take clearly longer in bfloat16 than in float32, as they do where
    the processor has no instructions for bfloat16, and where it has slow ones. Measured once, in
    some milliseconds; where it is so, a warning says it.
    """

    def __init__(self) -> None:
        self.known: Optional[bool] = None
        """The answer, as soon as there is one. It may be set: near a tie a training that goes on in
        another process would measure another one, and round otherwise than before."""

    def is_slow(self) -> bool:
        """
        # Returns

        `bool`
            The same at every call.
        """
        if self.known is None:
            self.known = _measure()
        return self.known


BFLOAT16 = Bfloat16Speed()
"""That of this process."""


def _measure() -> bool:
    """The answer, found by a trial."""
    seconds = {dtype: _trials(dtype) for dtype in (torch.float32, torch.bfloat16)}
    gains = min(seconds[torch.bfloat16]) / min(seconds[torch.float32])
    if gains < CLEARLY:
        return False
    logger.warning(
        "This processor multiplies in float32 %.1f times as fast as in bfloat16: products that are "
        'asked for in bfloat16 run in float32. `matmul_dtype: "float32"` says the same.',
        gains,
    )
    return True


def _trials(dtype: torch.dtype) -> List[float]:
    """Seconds of each product but the first, which prepares kernels."""
    vectors, weight = (
        torch.ones(ROWS, INPUTS, dtype=dtype, device="cpu"),
        torch.ones(OUTPUTS, INPUTS, dtype=dtype, device="cpu"),
    )
    seconds = []
    with torch.inference_mode(), torch.autocast("cpu", enabled=False):
        for _ in range(NUM_TRIALS + 1):
            start = time.perf_counter()
            torch.nn.functional.linear(vectors, weight)
            seconds.append(time.perf_counter() - start)
    return seconds[1:]


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
