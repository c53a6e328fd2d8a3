"""Where work is recorded as CUDA graphs."""

import os
from typing import Tuple

SWITCH = "ELMO_SCRATCH_CUDA_GRAPHS"
"""The environment variable that, with the value 0, does without."""


def recording_devices() -> Tuple[str, ...]:
    """
    # Returns

    `Tuple[str, ...]`
        The types of devices on which operations that come again are recorded and replayed.
    """
    return () if os.environ.get(SWITCH) == "0" else ("cuda",)
