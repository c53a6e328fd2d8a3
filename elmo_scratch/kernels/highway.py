"""The pointwise part of a highway layer."""

from typing import Any, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.kernels.library import COUNT, LIBRARY, POINTER, SIZE, functions, is_plain
from elmo_scratch.kernels.memory import buffer_pool

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
