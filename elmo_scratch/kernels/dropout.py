"""Dropout that draws few random bits per number."""

import math

import torch

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
