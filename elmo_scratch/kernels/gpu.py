"""
What all work on a GPU shares: Triton's kernels, as long as they work, and streams for what can run
side by side.
"""

import logging
import os
import threading
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import (
    Callable,
    ContextManager,
    Hashable,
    Iterator,
    List,
    Optional,
    Sequence,
    Tuple,
    TypeVar,
)

import torch

logger = logging.getLogger(__name__)

FUSED_SWITCH = "ELMO_SCRATCH_TRITON"
"""
Triton's kernels run on a GPU where they are known to be faster. Set this environment variable to 0
for never, to 1 for always.
"""

FUSES = os.environ.get(FUSED_SWITCH, "")
"""Its value, or "0" after a failure."""

ROUNDING = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
"""By which share Triton's kernels may differ from the reference, by the precision of products."""

Result = TypeVar("Result")


def fused_kernels(name: str, device: torch.device) -> Optional[ModuleType]:
    """
    The file `name` of `triton_kernels`, if its kernels can run on a device: a GPU with Triton, or a
    CPU with `TRITON_INTERPRET=1`.
    """
    is_interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if FUSES == "0" or is_interpreted != (device.type == "cpu"):
        return None
    return _imported(name)


@lru_cache(maxsize=None)
def _imported(name: str) -> Optional[ModuleType]:
    """
    A file that needs Triton, which takes long to import and is not everywhere: what imports the
    whole package passes its folder by, which has no `__init__.py`.
    """
    try:
        return import_module(f"elmo_scratch.kernels.triton_kernels.{name}")
    except ImportError:
        return None


def stop_fusing(reason: str) -> None:
    """Does without Triton's kernels from now on, with a warning."""
    global FUSES
    FUSES = "0"
    logger.warning(
        "Triton's kernels are not used from now on, and PyTorch's operations take their place, "
        "more slowly: %s",
        reason,
    )


def made_by_triton(work: Callable[[], Result]) -> Optional[Result]:
    """
    What `work` with Triton's kernels gives; `None` if it fails, and then they are not used again.
    """
    try:
        return work()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return None
    # A compiler that is missing or fails raises errors of many types.
    except Exception as error:
        stop_fusing(f"{type(error).__name__}: {error}".split("\n", 1)[0])
        return None


def product_rounding() -> Hashable:
    """How float32 products are rounded on a GPU. A recording keeps the setting it was made with."""
    settings = torch.backends.cuda.matmul
    # In PyTorch versions that have `fp32_precision`, reading `allow_tf32` may raise an error.
    precision: Optional[str] = getattr(settings, "fp32_precision", None)
    return settings.allow_tf32 if precision is None else precision


def agree(
    expected: Sequence[torch.Tensor], found: Sequence[torch.Tensor], dtype: torch.dtype
) -> bool:
    """
    Whether Triton's kernels found what the reference did, within rounding of products of type
    `dtype`. Where the reference is not finite everything is right. If they don't agree, Triton's
    kernels are not used again.
    """
    # Then the reference rounds what Triton's kernels don't.
    is_rounded = product_rounding() in (True, "tf32")
    bound = ROUNDING[torch.bfloat16 if is_rounded else dtype]
    pairs = [[part.float() for part in pair] for pair in zip(expected, found)]
    is_same = all(
        bool((theirs - ours).norm() <= bound * theirs.norm()) or not theirs.isfinite().all()
        for theirs, ours in pairs
    )
    if not is_same:
        stop_fusing("their results differ")
    return is_same


_OF_THREAD = threading.local()
"""The streams of each thread: `streams`, by device."""


@contextmanager
def side_by_side(device: torch.device) -> Iterator[Callable[[], ContextManager[None]]]:
    """
    Lets a GPU run parts of some work at the same time. Each part runs within the context that a
    call of the result gives; the parts don't depend on one another. They begin after what was asked
    of the GPU before, and what comes after this context waits for all of them. Tensors that a part
    reads must be kept until then. On other devices, or where gradients are recorded, the parts run
    one after the other.
    """
    is_eager = not torch.compiler.is_compiling()
    if device.type != "cuda" or torch.is_grad_enabled() or not is_eager:
        yield nullcontext
        return
    used: List[torch.cuda.Stream] = []
    before = torch.cuda.current_stream(device)

    @contextmanager
    def part() -> Iterator[None]:
        stream = _side_stream(device, len(used))
        used.append(stream)
        stream.wait_stream(before)
        with torch.cuda.stream(stream):
            yield

    try:
        yield part
    finally:
        for stream in used:
            before.wait_stream(stream)


def _side_stream(device: torch.device, number: int) -> torch.cuda.Stream:
    """One of this thread's own streams of a GPU."""
    streams = _OF_THREAD.__dict__.setdefault("streams", {})
    key: Tuple[torch.device, int] = (device, number)
    if key not in streams:
        streams[key] = torch.cuda.Stream(device)
    stream: torch.cuda.Stream = streams[key]
    return stream
