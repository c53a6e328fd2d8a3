"""What the benchmarks share: seconds, the machine's rate, and the operations that are needed."""

import time
from typing import Callable, Tuple, TypeVar

import torch

from elmo_scratch.alphabet import PADDING_ID
from elmo_scratch.kernels.onednn import matmul_into_pool
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder

Result = TypeVar("Result")


def timed(run: Callable[[], Result], device: torch.device) -> Tuple[float, Result]:
    """Seconds and the result."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    result = run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started, result


def product_rate(dtype: str, device: torch.device) -> float:
    """Operations a second of a large matrix product, as training makes it, the best of several."""
    size = 2048 if device.type == "cpu" else 8192
    matrix = torch.randn(size, size, device=device, dtype=getattr(torch, dtype))
    multiply = matmul_into_pool if device.type == "cpu" else torch.mm
    multiply(matrix, matrix)
    seconds = min(timed(lambda: multiply(matrix, matrix), device)[0] for _ in range(10))
    return 2 * size**3 / seconds


def lstm_operations(bilm: BiLm) -> float:
    """Operations of the products of both directions for one position."""
    return 2.0 * sum(
        weight.numel()
        for stack in (bilm.left_to_right, bilm.right_to_left)
        for name, weight in stack.named_parameters()
        if name.endswith("weight")
    )


def word_operations(encoder: CharCnnEncoder, words: torch.Tensor) -> float:
    """
    Operations of the products that the words need, of shape `(words, characters)`: their windows
    up to the word's end.
    """
    convolutions = sum(2 * one.weight.numel() for one in encoder.convolution.convolutions)
    above = 2 * sum(
        weight.numel()
        for name, weight in encoder.named_parameters()
        if name.endswith("weight") and not name.startswith("convolution")
    )
    windows = int((words != PADDING_ID).sum()) + len(words)
    return float(windows * convolutions + len(words) * above)
