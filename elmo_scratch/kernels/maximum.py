"""The maximum over the windows of a word."""

from typing import Any

import torch

from elmo_scratch.kernels.native_library import LIBRARY, functions, reaches
from elmo_scratch.kernels.native_structs import COUNT, POINTER, SIZE

DTYPES = (torch.float32, torch.float64, torch.bfloat16)
MAXIMA = functions(LIBRARY, "maxima", DTYPES, [POINTER, SIZE, SIZE, SIZE, POINTER, POINTER, COUNT])
MAXIMA_BACKWARD = functions(
    LIBRARY, "maxima_backward", DTYPES, [POINTER, POINTER, SIZE, SIZE, SIZE, POINTER, COUNT]
)


def maximum_over_windows(responses: torch.Tensor) -> torch.Tensor:
    """
    # Parameters

    responses : `torch.Tensor`
        Shape `(words, windows, filters)`, at least one window.

    # Returns

    `torch.Tensor`
        Shape `(words, filters)`. Of equal responses the first gets the gradient.
    """
    if not responses.requires_grad or not torch.is_grad_enabled():
        # Of PyTorch's two functions, only `max` remembers where the maximum was, and only `amax`
        # is fast.
        return responses.amax(dim=1)
    if responses.dtype in MAXIMA and responses.size(1) > 0 and reaches(responses):
        return _Maximum.apply(responses)
    return responses.max(dim=1).values


class _Maximum(torch.autograd.Function):
    """By compiled code."""

    @staticmethod
    def forward(ctx: Any, responses: torch.Tensor) -> torch.Tensor:
        """As `maximum_over_windows`."""
        responses = responses.contiguous()
        words, windows, filters = responses.shape
        maxima = responses.new_empty(words, filters)
        places = responses.new_empty(words, filters, dtype=torch.int32)
        MAXIMA[responses.dtype](
            responses.data_ptr(),
            *responses.shape,
            maxima.data_ptr(),
            places.data_ptr(),
            torch.get_num_threads(),
        )
        ctx.save_for_backward(places)
        ctx.shape = responses.shape
        return maxima

    @staticmethod
    def backward(ctx: Any, gradients: torch.Tensor) -> torch.Tensor:
        """The gradient of each response."""
        (places,) = ctx.saved_tensors
        words, windows, filters = ctx.shape
        if torch.is_grad_enabled() or not reaches(gradients, places):
            # It may be asked for the gradients of these gradients.
            zeros = gradients.new_zeros(words, windows, filters)
            return zeros.scatter(1, places.long().unsqueeze(1), gradients.unsqueeze(1))
        gradients, places = gradients.contiguous(), places.to(torch.int32).contiguous()
        responses = gradients.new_empty(words, windows, filters)
        MAXIMA_BACKWARD[gradients.dtype](
            gradients.data_ptr(),
            places.data_ptr(),
            *responses.shape,
            responses.data_ptr(),
            torch.get_num_threads(),
        )
        return responses
