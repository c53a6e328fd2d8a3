"""The precision of matrix products, and the device that a number stands for."""

import logging
import time
from abc import ABC, abstractmethod
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, ContextManager, List, Optional, Sequence

import torch
from allennlp.common.checks import ConfigurationError

logger = logging.getLogger(__name__)

ROWS, INPUTS, OUTPUTS = 64, 512, 1024
"""A product like those of an LSTM step, small enough to measure on a slow processor."""

NUM_TRIALS = 5

CLEARLY = 1.2
"""Float32 must be so many times as fast: near a tie the answer would change from run to run."""


class Bfloat16Speed:
    """
    Whether CPU products take clearly longer in bfloat16 than in float32, as they do on processors
    without instructions for bfloat16 or with slow ones. It is measured once, in some milliseconds;
    a warning says so if bfloat16 is slow.
    """

    def __init__(self) -> None:
        self.known: Optional[bool] = None
        """The answer, once there is one. A resumed training may set it to its former value: near a
        tie, a new measurement could differ, and products would be rounded differently."""

    def is_slow(self) -> bool:
        """Whether bfloat16 is slow; the same answer at every call."""
        if self.known is None:
            self.known = _measure()
        return self.known


BFLOAT16 = Bfloat16Speed()
"""The measurement of this process."""


def _measure() -> bool:
    """Whether bfloat16 is slow, by a trial."""
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
    """The seconds of each product except the first, which prepares kernels."""
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
"""The compute capability of the first GPUs with bfloat16 products."""


class MixedPrecision(torch.nn.Module, ABC):
    """
    A module whose matrix products may run in less precision than its weights have. Its parameters,
    outputs and accumulated sums keep the type of the weights. Abstract.
    """

    rounds_in_evaluation: bool = True
    """Whether products run in less precision in evaluation too, which measured results must not."""

    _matmul_dtype: Optional[torch.dtype] = None

    @abstractmethod
    def forward(self, *arguments: Any) -> Any: ...

    def matmul_dtype_for(self, weight: torch.Tensor) -> torch.dtype:
        """
        The type in which products with `weight` run. It is the weights' own if no other was asked
        for, if the other would be slower on this processor, or in an evaluation that is not
        rounded.
        """
        if self._matmul_dtype is None or not _pays(weight.device):
            return weight.dtype
        if not self.training and not self.rounds_in_evaluation:
            return weight.dtype
        return self._matmul_dtype

    @staticmethod
    def used(name: str, device: torch.device) -> str:
        """
        The precision, a key of `MATMUL_DTYPES`, in which products on `device` run if `name` is
        asked for.
        """
        return name if MATMUL_DTYPES[name] is None or _pays(device) else "float32"

    @staticmethod
    def is_asked_for(module: torch.nn.Module) -> bool:
        """
        Whether products within `module` are asked to run in less precision than its weights have.
        """
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
    The type to which vectors computed with these weights are rounded on the way: the weights' own
    type, or that of `torch.autocast` where it is on.
    """
    kind = weights[0].device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return torch.get_autocast_dtype(kind)
    return weights[0].dtype


def without_autocast(device: torch.device) -> ContextManager[Any]:
    """A context in which `torch.autocast` rounds nothing on `device`."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def _pays(device: torch.device) -> bool:
    """Whether products in less precision are faster on a device."""
    if device.type == "cuda":
        return _has_bfloat16(device)
    return device.type != "cpu" or not BFLOAT16.is_slow()


@lru_cache(maxsize=None)
def _has_bfloat16(device: torch.device) -> bool:
    """Whether a GPU multiplies in bfloat16 itself; PyTorch emulates it on older ones, slowly."""
    if torch.cuda.get_device_capability(device) >= FIRST_WITH_BFLOAT16:
        return True
    logger.warning(
        "The GPU %s has no instructions for bfloat16: products that are asked for in bfloat16 run "
        'in float32. `matmul_dtype: "float32"` says the same.',
        torch.cuda.get_device_name(device),
    )
    return False


def device_of(cuda_device: int) -> torch.device:
    """
    Returns the GPU of that number, or the processor for -1. Raises `ConfigurationError` if
    `cuda_device` is no number or there is no such GPU.
    """
    if isinstance(cuda_device, bool) or not isinstance(cuda_device, int):
        raise ConfigurationError(
            f"expected the number of a GPU, or -1 for the processor, but got {cuda_device!r}"
        )
    count = torch.cuda.device_count()
    if not -1 <= cuda_device < count:
        seen = f"those from 0 to {count - 1}" if count else "none"
        raise ConfigurationError(
            f"expected a GPU with the number {cuda_device}, but PyTorch sees {seen}; -1 stands for "
            "the processor"
        )
    return torch.device("cuda", cuda_device) if cuda_device >= 0 else torch.device("cpu")
