"""Whether this processor multiplies in bfloat16 faster than in float32."""

import logging
import time
from typing import List, Optional

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
