"""Pointwise operations: dropout, the logistic function, and the gate of a highway layer."""

import math
from typing import Any, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.library import COUNT, LIBRARY, POINTER, SIZE, functions, is_plain
from elmo_scratch.kernels.memory import buffer_pool

BITS = 16
"""Random bits per number. PyTorch draws more, which takes longer than the rest of dropout."""

PARTS = 2**BITS
"""The probability is rounded to a multiple of `1 / PARTS`, an error below a 130,000th."""

NUMBERS_OF_A_DRAW = 64 // BITS


class Dropout(torch.nn.Dropout):
    """
    PyTorch's dropout, but faster on a CPU. Numbers that stay are divided by the share that really
    stays, so that the expected value of each number doesn't change.

    # Parameters

    p : `float`, optional (default = `0.5`)
        The probability that a number becomes zero.
    inplace : `bool`, optional (default = `False`)
        Whether the input is overwritten.

    # Source

    Srivastava et al. 2014, section 4.
    """

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Scales each number or sets it to zero in training; any shape."""
        dropped_parts = round(self.p * PARTS)
        if (
            not self.training
            or not 0 < dropped_parts < PARTS
            or not numbers.is_floating_point()
            or numbers.device.type != "cpu"
        ):
            return super().forward(numbers)
        scales = _scales(numbers, dropped_parts)
        return numbers.mul_(scales) if self.inplace else numbers * scales


def _scales(numbers: torch.Tensor, dropped_parts: int) -> torch.Tensor:
    """The factor of each number, zero or the scale; the shape and the type of `numbers`."""
    num_draws = math.ceil(numbers.numel() / NUMBERS_OF_A_DRAW)
    draws = torch.empty(num_draws, dtype=torch.int64, device="cpu").random_(-(2**63), None)
    # Signed integers, from -PARTS / 2 on.
    drawn = draws.view(torch.int16)[: numbers.numel()].view(numbers.shape)
    stays = drawn >= dropped_parts - PARTS // 2
    scales = buffer_pool.empty(numbers.shape, numbers.dtype)
    return torch.mul(stays, PARTS / (PARTS - dropped_parts), out=scales)


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


DTYPES = (torch.float32, torch.bfloat16)
"""The types of products for which there is compiled code. All other tensors are in float32."""

CARRY = functions(LIBRARY, "carry", DTYPES, [*[POINTER] * 3, SIZE, SIZE, POINTER, COUNT])
CARRY_BACKWARD = functions(
    LIBRARY, "carry_backward", DTYPES, [*[POINTER] * 4, SIZE, SIZE, *[POINTER] * 3, COUNT]
)


def highway_gate(
    vectors: torch.Tensor, transformed: torch.Tensor, carried: torch.Tensor
) -> torch.Tensor:
    """
    `g · relu(t) + (1 - g) · x` with `g = σ(c)`, differentiable. Compiled code reads each number
    once forward and once backward, and writes to recycled memory.

    # Parameters

    vectors : `torch.Tensor`
        `x`, of shape `(rows, dim)`.
    transformed, carried : `torch.Tensor`
        `t` and `c`, of the same shape, in the precision of products.

    # Returns

    `torch.Tensor`
        Of the shape and the type of `vectors`.
    """
    tensors = (vectors, transformed, carried)
    if (
        carried.dtype in CARRY
        and transformed.dtype == carried.dtype
        and vectors.dtype == torch.float32
        and vectors.dim() == 2
        and vectors.shape == transformed.shape == carried.shape
        and is_plain(*tensors, on="cpu")
    ):
        return _HighwayGate.apply(*tensors)
    transformed, carried = transformed.to(vectors.dtype), carried.to(vectors.dtype)
    return torch.lerp(vectors, torch.relu(transformed), torch.sigmoid(carried))


class _HighwayGate(torch.autograd.Function):
    """`highway_gate` by compiled code."""

    @staticmethod
    def forward(ctx: Any, *tensors: torch.Tensor) -> torch.Tensor:
        vectors, transformed, carried = tensors = tuple(part.contiguous() for part in tensors)
        outputs = buffer_pool.empty(vectors.shape, vectors.dtype)
        CARRY[carried.dtype](
            *(part.data_ptr() for part in tensors),
            *vectors.shape,
            outputs.data_ptr(),
            torch.get_num_threads(),
        )
        ctx.dtype = carried.dtype
        # The backward pass recomputes nonlinearities: writing and reading them would take longer.
        ctx.save_for_backward(*tensors)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: torch.Tensor) -> Tuple[torch.Tensor, ...]:
        """The gradients of the vectors and of both products."""
        # Hooks on saved tensors may have changed their types and layouts.
        types = (torch.float32, ctx.dtype, ctx.dtype)
        kept = [part.to(dtype).contiguous() for part, dtype in zip(ctx.saved_tensors, types)]
        gradients = gradients.to(torch.float32).contiguous()
        made = tuple(buffer_pool.empty(gradients.shape, dtype) for dtype in types)
        CARRY_BACKWARD[ctx.dtype](
            *(part.data_ptr() for part in (*kept, gradients)),
            *gradients.shape,
            *(part.data_ptr() for part in made),
            torch.get_num_threads(),
        )
        return made
