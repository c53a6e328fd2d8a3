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
    Dict,
    Hashable,
    Iterator,
    List,
    Optional,
    Sequence,
    Type,
    TypeVar,
)

import torch

logger = logging.getLogger(__name__)

FUSED_SWITCH = "ELMO_SCRATCH_TRITON"
"""
Triton's kernels run on a GPU, those of LSTMs where they are faster. Set this environment variable
to 0 for none, to 1 for all.
"""

FUSES = os.environ.get(FUSED_SWITCH, "")
"""Its value."""

KERNELS = {"lstm_steps": "the steps of LSTMs", "char_convolution": "convolutions over characters"}
"""The files of Triton's kernels, and what they compute."""

STOPPED: Dict[str, str] = {}
"""The files whose kernels have failed, and why: they are not used again."""

ROUNDING = 1e-4
"""By which share Triton's kernels may differ from a reference in float32."""

ROUNDING_OF_TF32 = 3e-2
"""The same of a reference whose products PyTorch rounds."""

TIMES_AS_FAR = 5.0
"""
How many times as far from what is exact they may be as a reference in bfloat16: rounding takes
different ways through the steps of an LSTM, and what is wrong is much farther away.
"""

Result = TypeVar("Result")


def may_fuse(name: str, device: torch.device) -> bool:
    """Whether it is worth asking for `fused_kernels`: on an ordinary CPU there are none."""
    is_interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    return FUSES != "0" and name not in STOPPED and is_interpreted == (device.type == "cpu")


def fused_kernels(name: str, device: torch.device) -> Optional[ModuleType]:
    """
    The file `name` of `triton_kernels`, if its kernels can run on a device: a GPU with Triton, or a
    CPU with `TRITON_INTERPRET=1`.
    """
    return _imported(name) if may_fuse(name, device) else None


@lru_cache(maxsize=None)
def _imported(name: str) -> Optional[ModuleType]:
    """
    A file that needs Triton, which takes long to import and is not everywhere: what imports the
    whole package passes its folder by, which has no `__init__.py`.
    """
    try:
        return import_module(f"elmo_scratch.kernels.triton_kernels.{name}")
    except ModuleNotFoundError:
        return None
    # Triton that is there and can't be imported raises errors of many types.
    except Exception as error:
        stop_fusing(name, _told(error))
        return None


def stop_fusing(name: str, reason: str) -> None:
    """Does without the kernels of a file from now on, with a warning."""
    STOPPED[name] = reason
    logger.warning(
        "Triton's kernels for %s are not used from now on, and PyTorch's operations take their "
        "place, more slowly: %s",
        KERNELS[name],
        reason,
    )


def made_by_triton(
    name: str, work: Callable[[], Result], *raised: Type[Exception]
) -> Optional[Result]:
    """
    What `work` with the kernels of a file gives; `None` if it fails, and then they are not used
    again, or if there is no memory for it. Errors that are `raised` are passed on.
    """
    try:
        return work()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return None
    except raised:
        raise
    # A compiler that is missing or fails raises errors of many types.
    except Exception as error:
        stop_fusing(name, _told(error))
        return None


def _told(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {error}".split("\n", 1)[0]


def product_rounding() -> Hashable:
    """How float32 products are rounded on a GPU. A recording keeps the setting it was made with."""
    settings = torch.backends.cuda.matmul
    # In PyTorch versions that have `fp32_precision`, reading `allow_tf32` may raise an error.
    precision: Optional[str] = getattr(settings, "fp32_precision", None)
    return settings.allow_tf32 if precision is None else precision


def agree(
    name: str,
    expected: Sequence[torch.Tensor],
    found: Sequence[torch.Tensor],
    exact: Optional[Sequence[torch.Tensor]] = None,
) -> bool:
    """
    Whether the kernels of a file `found` what the reference did, within rounding; if not, they are
    not used again. Where the reference is not finite everything is right.

    If `expected` is rounded to bfloat16, `exact` is the same in float32.
    """
    share = ROUNDING_OF_TF32 if product_rounding() in (True, "tf32") else ROUNDING

    def is_near(reference: torch.Tensor, ours: torch.Tensor, best: torch.Tensor) -> bool:
        bound = share * best.float().norm() + TIMES_AS_FAR * _distance(reference, best)
        return bool(_distance(ours, best) <= bound) or not bool(best.isfinite().all())

    is_same = all(map(is_near, expected, found, expected if exact is None else exact))
    if not is_same:
        stop_fusing(name, "their results differ")
    return is_same


def _distance(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The norm of the difference, in float32."""
    return (one.float() - other.float()).norm()


@contextmanager
def side_by_side(device: torch.device) -> Iterator[Callable[[], ContextManager[None]]]:
    """
    Lets a GPU run parts of some work at the same time. Each part runs within the context that a
    call of the result gives; the parts don't depend on one another. They begin after what was asked
    of the GPU before, and what comes after this context waits for all of them. Tensors that a part
    reads must be kept until then. On other devices, where gradients are recorded, and outside the
    main thread, the parts run one after the other.
    """
    is_eager = not torch.compiler.is_compiling()
    is_main = threading.current_thread() is threading.main_thread()
    if device.type != "cuda" or torch.is_grad_enabled() or not (is_eager and is_main):
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


@lru_cache(maxsize=None)
def _side_stream(device: torch.device, number: int) -> torch.cuda.Stream:
    """One of the main thread's own streams of a GPU."""
    return torch.cuda.Stream(device)
