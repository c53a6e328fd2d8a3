"""All steps of an LSTM by compiled code."""

import ctypes
import math
from functools import partial
from typing import Any, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.modules.lstms.kept_run import KeptRun, RunGradients, gradients_or_zeros
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.steps import Clips, LstmWeights
from elmo_scratch.modules.products import RECYCLED, WeightProduct, recycled_product
from elmo_scratch.modules.products.panels import in_panels
from elmo_scratch.native_library import (
    COUNT,
    INSTRUCTIONS,
    LIBRARY,
    POINTER,
    SIZE,
    Instructions,
    reaches,
    wide_functions,
)


class _Sizes(ctypes.Structure):
    _fields_ = [
        ("batch_sizes", ctypes.POINTER(SIZE)),
        *((name, SIZE) for name in ("steps", "batch", "cells", "dim")),
    ]


class _Forward(ctypes.Structure):
    _fields_ = [
        *((name, POINTER) for name in ("to_gates", "projection", "bias", "gates", "scale")),
        *(
            (name, POINTER)
            for name in ("hidden", "cell", "after", "opened", "projected", "outputs")
        ),
        *((name, POINTER) for name in ("last_hidden", "last_cell")),
        *((name, ctypes.c_float) for name in ("cell_clip", "projection_clip")),
    ]


class _Backward(ctypes.Structure):
    _fields_ = [
        *((name, POINTER) for name in ("from_gates", "projection", "gates", "scale", "cell")),
        *((name, POINTER) for name in ("after", "projected", "d_outputs", "d_gates")),
        *((name, POINTER) for name in ("d_projected", "d_hidden", "d_cell")),
        *((name, ctypes.c_float) for name in ("cell_clip", "projection_clip")),
    ]


_SIZES = ctypes.POINTER(_Sizes)
# In float32 is all that is not rounded for products.
READ = wide_functions(
    LIBRARY, "read_forward", INSTRUCTIONS, [_SIZES, ctypes.POINTER(_Forward), COUNT, COUNT]
)
READ_BACKWARD = wide_functions(
    LIBRARY, "read_backward", INSTRUCTIONS, [_SIZES, ctypes.POINTER(_Backward), COUNT, COUNT]
)


class Panels(NamedTuple):
    """
    Weights as compiled code reads them.

    # Parameters

    to_gates : `torch.Tensor`
        From the last output.
    projection : `torch.Tensor`
        From the memory cells.
    """

    to_gates: torch.Tensor
    projection: torch.Tensor

    @classmethod
    def of(cls, weights: LstmWeights, dtype: torch.dtype) -> "Panels":
        """
        # Parameters

        weights : `LstmWeights`
            In float32.
        dtype : `torch.dtype`
            The precision of products.
        """
        to_gates = in_panels(weights.from_hidden, dtype, _has_tiles(), is_of_gates=True)
        return cls(to_gates, in_panels(weights.projection, dtype, _has_tiles()))


class Forward(NamedTuple):
    """
    What compiled code makes of a run.

    # Parameters

    outputs : `torch.Tensor`
        Shape `(read, dim)`, of the type of the weights, as all but memory and last states.
    last : `LstmState`
        Of shape `(batch, ...)`: each sentence's own last state.
    opened : `torch.Tensor`
        Shape `(read, cell)`: what was projected.
    projected : `torch.Tensor`
        Shape `(read, dim)`: outputs before they were scaled.
    after : `torch.Tensor`
        Shape `(read, cell)`: memory after each step.
    """

    outputs: torch.Tensor
    last: LstmState
    opened: torch.Tensor
    projected: torch.Tensor
    after: torch.Tensor


def can_run_compiled(
    weights: LstmWeights,
    dtype: torch.dtype,
    bias: torch.Tensor,
    inputs: torch.Tensor,
    batch_sizes: Sequence[int],
    state: LstmState,
) -> bool:
    """
    # Parameters

    weights, dtype, bias, inputs, batch_sizes, state
        As in `run_filled`.

    # Returns

    `bool`
        Whether there is compiled code for all that.
    """
    dim, num_cells = weights.projection.shape
    tensors = (*weights, bias, inputs, *state)
    return (
        dtype in READ
        and dim > 0
        and len(batch_sizes) > 0
        and batch_sizes[-1] > 0
        and all(before >= after for before, after in zip(batch_sizes, batch_sizes[1:]))
        and inputs.shape == (sum(batch_sizes), weights.from_inputs.size(1))
        and weights.from_inputs.size(0) == 4 * num_cells
        and weights.from_hidden.shape == (4 * num_cells, dim)
        and bias.shape == (4 * num_cells,)
        and state.hidden.shape == (batch_sizes[0], dim)
        and state.cell.shape == (batch_sizes[0], num_cells)
        and all(tensor.dtype == torch.float32 for tensor in tensors)
        and not torch.is_autocast_enabled("cpu")
        and reaches(*tensors)
    )


def run_compiled(
    weights: LstmWeights,
    dtype: torch.dtype,
    bias: torch.Tensor,
    inputs: torch.Tensor,
    batch_sizes: Sequence[int],
    state: LstmState,
    clips: Clips,
    output_scale: Optional[torch.Tensor],
) -> KeptRun:
    """
    Runs an LSTM over the positions of a `ReadingOrder`, as `run_steps`: but for the inputs' share
    of the gates, all in one call. Where weights are small each thread reads sentences of its own,
    from the first to the last step, so that none waits for another; large ones pass once a step,
    and each thread reads some of them for all sentences. The gates of a few cells are opened while
    they are in the processor's nearest cache.

    # Parameters

    weights : `LstmWeights`
        In float32, as all that is not rounded for products; the numbers of memory cells and of
        outputs are multiples of `INPUTS_TOGETHER`.
    dtype : `torch.dtype`
        The precision of products.
    bias, inputs, batch_sizes, state, clips, output_scale
        As in `run_steps`.
    """
    gates = _share_of_inputs(inputs, weights.from_inputs, dtype)
    panels = Panels.of(weights, dtype)
    done = run_forward(panels, bias, gates, batch_sizes, state, clips, output_scale)
    cell = state.cell.contiguous()
    kept = [gates, done.opened, done.projected, done.after, cell]
    kept += [weights.from_hidden, weights.projection]
    backward = partial(_run_compiled_backward, dtype)
    return KeptRun(done.outputs.to(cell.dtype), done.last, kept, backward)


def run_forward(
    panels: Panels,
    bias: torch.Tensor,
    gates: torch.Tensor,
    batch_sizes: Sequence[int],
    state: LstmState,
    clips: Clips,
    output_scale: Optional[torch.Tensor],
) -> Forward:
    """
    # Parameters

    panels : `Panels`
        The weights.
    bias, batch_sizes, state, clips, output_scale
        As in `run_compiled`.
    gates : `torch.Tensor`
        Shape `(read, 4 * cell)`, of the type of the weights: the share of the inputs. Written over
        with the whole gates, before their nonlinearities.
    """
    dtype, read, dim = gates.dtype, len(gates), state.hidden.size(1)
    hidden, cell = state.hidden.to(dtype).contiguous(), state.cell.contiguous()
    after = RECYCLED.empty((read, cell.size(1)), cell.dtype)
    opened = RECYCLED.empty((read, cell.size(1)), dtype)
    projected = RECYCLED.empty((read, dim), dtype)
    outputs = projected
    if output_scale is not None:
        output_scale, outputs = output_scale.contiguous(), torch.empty_like(projected)
    last = LstmState(cell.new_empty(len(cell), dim), torch.empty_like(cell))
    tensors = [*panels, bias.contiguous(), gates, output_scale, hidden, cell, after]
    tensors += [opened, projected, outputs, *last]
    _run(READ[dtype], _Forward, batch_sizes, cell, dim, tensors, clips)
    return Forward(outputs, last, opened, projected, after)


def _run_compiled_backward(
    dtype: torch.dtype,
    kept: Sequence[torch.Tensor],
    batch_sizes: Sequence[int],
    clips: Clips,
    output_scale: Optional[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> RunGradients:
    """With the precision of the run's products, a `RunBackward`."""
    # They may have been kept by others, in their own way.
    gates, opened, projected = (tensor.to(dtype).contiguous() for tensor in kept[:3])
    after, cell, from_hidden, projection, d_outputs = (
        tensor.to(torch.float32).contiguous() for tensor in (*kept[3:], output_gradients)
    )
    from_gates, unprojection = (
        in_panels(weight, dtype, _has_tiles(), is_turned=True)
        for weight in (from_hidden, projection)
    )
    if output_scale is not None:
        output_scale = output_scale.to(torch.float32).contiguous()
    d_gates, d_projected = (RECYCLED.empty(part.shape, dtype) for part in (gates, projected))
    # Sentences that end at a step start from the gradient of their last state.
    given = gradients_or_zeros(state_gradients, output_gradients, cell.shape)
    d_state = LstmState(*(part.clone(memory_format=torch.contiguous_format) for part in given))
    tensors = [from_gates, unprojection, gates, output_scale, cell, after, projected, d_outputs]
    tensors += [d_gates, d_projected, *d_state]
    function, dim = READ_BACKWARD[dtype], projected.size(1)
    _run(function, _Backward, batch_sizes, cell, dim, tensors, clips)
    return RunGradients(d_gates, d_projected, opened, d_state)


def _share_of_inputs(
    inputs: torch.Tensor, weight: torch.Tensor, dtype: torch.dtype
) -> torch.Tensor:
    """Of the gates, shape `(read, 4 * cell)`, in memory of its own, row by row."""
    inputs = inputs.contiguous()  # A product lies as its left one does.
    if dtype == torch.bfloat16 and _has_tiles():
        return WeightProduct(weight, dtype, num_uses=1)(inputs)
    return recycled_product(inputs.to(dtype), weight.to(dtype).t())


def _run(
    function: Any,
    kind: Any,
    batch_sizes: Sequence[int],
    cell: torch.Tensor,
    dim: int,
    tensors: Sequence[Optional[torch.Tensor]],
    clips: Clips,
) -> None:
    """Calls compiled code with the addresses of `tensors`."""
    steps = len(batch_sizes)
    sizes = _Sizes((SIZE * steps)(*batch_sizes), steps, len(cell), cell.size(1), dim)
    places = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
    bounds = [math.nan if clip is None else clip for clip in clips]
    function(
        ctypes.byref(sizes),
        ctypes.byref(kind(*places, *bounds)),
        torch.get_num_threads(),
        _has_tiles(),
    )


def _has_tiles() -> bool:
    """Whether this processor has tiles."""
    return INSTRUCTIONS == Instructions.TILES
