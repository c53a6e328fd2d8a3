"""What tests of Triton's kernels share."""

import os
from importlib.util import find_spec

import pytest
import torch

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if IS_INTERPRETED else "cuda"

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None or not (IS_INTERPRETED or torch.cuda.is_available()),
    reason="needs Triton, and a GPU or TRITON_INTERPRET=1: `make test-triton`",
)
