"""A logistic function whose result doesn't depend on a number's place in its tensor."""

import torch

NUMBERS_AT_ONCE = 32
"""
PyTorch's SIMD code takes so many numbers at once, or a half or a quarter of them, depending on the
instruction set. It takes the remainder by another formula, which rounds differently.
"""

NUMBERS_OF_A_THREAD = 2**15
"""Larger tensors are split evenly among threads, and each thread has a remainder of its own."""


def sigmoid_(numbers: torch.Tensor) -> torch.Tensor:
    """
    The logistic function in place. On a CPU, a number's result depends neither on the tensor's
    shape, nor on the number's place in it, nor on the number of threads.

    # Parameters

    numbers : `torch.Tensor`
        Any shape; its gradient is not needed.

    # Returns

    `torch.Tensor`
        `numbers`.
    """
    if numbers.device.type != "cpu":
        return numbers.sigmoid_()
    if not numbers.is_contiguous():
        return numbers.copy_(sigmoid_(numbers.contiguous()))
    whole = _even(numbers.numel())
    if whole == numbers.numel():
        return numbers.sigmoid_()
    flat = numbers.view(-1)
    flat[:whole].sigmoid_()
    left_over = flat[whole:]
    padded = left_over.new_zeros(-(-len(left_over) // NUMBERS_AT_ONCE) * NUMBERS_AT_ONCE)
    padded[: len(left_over)] = left_over
    left_over.copy_(padded.sigmoid_()[: len(left_over)])
    return numbers


def _even(count: int) -> int:
    """The most of so many numbers that leave no remainder in any thread."""
    while True:
        threads = min(torch.get_num_threads(), -(-count // NUMBERS_OF_A_THREAD)) or 1
        left_over = count % (threads * NUMBERS_AT_ONCE)
        if left_over == 0:
            return count
        count -= left_over
