"""A logistic function whose result doesn't depend on where a number lies."""

import torch

NUMBERS_AT_ONCE = 32
"""PyTorch takes the function of so many numbers with one formula, or of a half or a quarter of
them, as the processor's instructions go, and of those left over at the end with another one that
rounds differently."""

NUMBERS_OF_A_THREAD = 2**15
"""A tensor of more numbers is split evenly among threads, each of which has an end of its own."""


def sigmoid_(numbers: torch.Tensor) -> torch.Tensor:
    """
    The logistic function in place. On a processor a number's result depends neither on the shape
    of the tensor, nor on its place there, nor on how many threads there are.

    # Parameters

    numbers : `torch.Tensor`
        Of any shape; its gradient is not needed.

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
    filled_up = left_over.new_zeros(-(-len(left_over) // NUMBERS_AT_ONCE) * NUMBERS_AT_ONCE)
    filled_up[: len(left_over)] = left_over
    left_over.copy_(filled_up.sigmoid_()[: len(left_over)])
    return numbers


def _even(count: int) -> int:
    """How many of so many numbers leave none over in any thread."""
    while True:
        threads = min(torch.get_num_threads(), -(-count // NUMBERS_OF_A_THREAD)) or 1
        left_over = count % (threads * NUMBERS_AT_ONCE)
        if left_over == 0:
            return count
        count -= left_over
