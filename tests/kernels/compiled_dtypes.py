"""The precisions of products in which this processor runs compiled code."""

from typing import Any, Dict

import pytest
import torch


def needs_bfloat16(functions: Dict[torch.dtype, Any]) -> pytest.MarkDecorator:
    """Where there is nothing in bfloat16 among compiled functions, what it marks is skipped."""
    reason = "this processor has no instructions for bfloat16"
    return pytest.mark.skipif(torch.bfloat16 not in functions, reason=reason)


def each_dtype_of(functions: Dict[torch.dtype, Any]) -> pytest.MarkDecorator:
    """Gives what it marks each precision in which there are compiled functions as its `dtype`."""
    bfloat16 = pytest.param(torch.bfloat16, marks=needs_bfloat16(functions))
    return pytest.mark.parametrize("dtype", [torch.float32, bfloat16])
