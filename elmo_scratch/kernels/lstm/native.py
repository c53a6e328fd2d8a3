"""All steps of an LSTM by compiled code, sizes padded to those that it has kernels for."""

import ctypes
import math
import operator
from functools import partial
from typing import Any, NamedTuple, Optional, Sequence

import torch
from torch.nn.functional import pad

from elmo_scratch.kernels.library import (
    COUNT,
    HAS_TILES,
    INPUTS_TOGETHER,
    INSTRUCTIONS,
    LIBRARY,
    SIZE,
    LstmBackward,
    LstmForward,
    LstmSizes,
    is_plain,
    pack_weights,
    simd_functions,
)
from elmo_scratch.kernels.linear import PackedLinear
from elmo_scratch.kernels.lstm.run import LstmBackward as BackwardPass
from elmo_scratch.kernels.lstm.run import (
    LstmGradients,
    LstmResult,
    LstmRun,
    LstmState,
    LstmWeights,
    gradients_or_zeros,
)
from elmo_scratch.kernels.memory import buffer_pool
from elmo_scratch.kernels.onednn import matmul_into_pool

_SIZES = ctypes.POINTER(LstmSizes)
# By the precision of products. Memory and gradients of outputs are float32.
READ = simd_functions(
    LIBRARY, "read_forward", INSTRUCTIONS, [_SIZES, ctypes.POINTER(LstmForward), COUNT, COUNT]
)
READ_BACKWARD = simd_functions(
    LIBRARY, "read_backward", INSTRUCTIONS, [_SIZES, ctypes.POINTER(LstmBackward), COUNT, COUNT]
)


class Panels(NamedTuple):
    """An LSTM's weights, packed for native code, without the input weights; and its `gate_bias`."""

    recurrent: torch.Tensor
    projection: torch.Tensor
    bias: torch.Tensor

    @classmethod
    def of(cls, run: LstmRun) -> "Panels":
        _, recurrent_weight, projection_weight = run.weights
        return cls(
            pack_weights(recurrent_weight, run.dtype, HAS_TILES, is_of_gates=True),
            pack_weights(projection_weight, run.dtype, HAS_TILES),
            run.gate_bias(),
        )


def can_run_native(run: LstmRun) -> bool:
    """Whether there is native code for a run, forward and backward."""
    weights, batch_sizes, (hidden, cell) = run.weights, run.batch_sizes, run.state
    dim, num_cells = weights.projection_weight.shape
    tensors = run.tensors()
    return (
        run.dtype in READ
        and dim > 0
        and len(batch_sizes) > 0
        and batch_sizes[-1] > 0
        and all(map(operator.ge, batch_sizes, batch_sizes[1:]))
        and run.inputs.shape == (sum(batch_sizes), weights.input_weight.size(1))
        and weights.input_weight.size(0) == 4 * num_cells
        and weights.recurrent_weight.shape == (4 * num_cells, dim)
        and run.bias.shape == (4 * num_cells,)
        and hidden.shape == (batch_sizes[0], dim)
        and cell.shape == (batch_sizes[0], num_cells)
        and {tensor.dtype for tensor in tensors} == {torch.float32}
        and not torch.is_autocast_enabled("cpu")
        and is_plain(*tensors, on="cpu")
    )


def lstm_native_aligned(run: LstmRun) -> LstmResult:
    """
    Runs an LSTM whose numbers of memory cells and outputs are multiples of `INPUTS_TOGETHER`. The
    result keeps the whole gates, before their nonlinearities, the memory cells' outputs, the
    outputs before dropout, and memory after each step.

    The inputs' share of the gates is computed first; then one call makes all steps. With small
    weights, each thread reads sentences of its own from the first to the last step, so that no
    thread waits for another. Large weights are read once a step, each thread reading a part of them
    for all sentences. The nonlinearities of a few cells are applied while their gates are in the L1
    cache.
    """
    dtype, inputs = run.dtype, run.inputs.contiguous()  # A product's layout follows its left one.
    if dtype == torch.bfloat16 and HAS_TILES:
        gates = PackedLinear(run.weights.input_weight, dtype, num_uses=1)(inputs)
    else:
        gates = matmul_into_pool(inputs.to(dtype), run.weights.input_weight.to(dtype).t())
    rows, dim = len(gates), run.state.hidden.size(1)
    hidden, cell = run.state.hidden.to(dtype).contiguous(), run.state.cell.contiguous()
    after = buffer_pool.empty((rows, cell.size(1)), cell.dtype)
    cell_outputs = buffer_pool.empty((rows, cell.size(1)), dtype)
    projected = buffer_pool.empty((rows, dim), dtype)
    outputs, mask = projected, run.recurrent_dropout_mask
    if mask is not None:
        mask, outputs = mask.contiguous(), torch.empty_like(projected)
    last = LstmState(cell.new_empty(len(cell), dim), torch.empty_like(cell))
    work = [gates, mask, hidden, cell, after, cell_outputs, projected, outputs, *last]
    _call(READ[dtype], LstmForward, run, [*Panels.of(run), *work])
    return LstmResult(
        outputs.to(cell.dtype),
        last,
        [gates, cell_outputs, projected, after],
        _lstm_native_aligned_backward,
    )


def _lstm_native_aligned_backward(
    run: LstmRun,
    kept: Sequence[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> LstmGradients:
    """The backward pass of `lstm_native_aligned`, an `LstmBackward`."""
    gates, cell_outputs, projected = (tensor.to(run.dtype).contiguous() for tensor in kept[:3])
    mask = run.recurrent_dropout_mask
    after, cell, d_outputs, *masks = (
        tensor.to(torch.float32).contiguous()
        for tensor in (kept[3], run.state.cell, output_gradients, *([] if mask is None else [mask]))
    )
    turned = [
        pack_weights(weight.to(torch.float32).contiguous(), run.dtype, HAS_TILES, is_turned=True)
        for weight in run.weights[1:]
    ]
    d_gates, d_projected = (buffer_pool.empty(part.shape, run.dtype) for part in (gates, projected))
    # Sentences that end at a step start from the gradient of their last state.
    given = gradients_or_zeros(state_gradients, output_gradients, cell)
    d_state = LstmState(*(part.clone(memory_format=torch.contiguous_format) for part in given))
    tensors = [*turned, gates, masks[0] if masks else None, cell, after, projected, d_outputs]
    tensors += [d_gates, d_projected, *d_state]
    _call(READ_BACKWARD[run.dtype], LstmBackward, run, tensors)
    return LstmGradients(d_gates, d_projected, cell_outputs, d_state)


def _call(
    function: Any, kind: Any, run: LstmRun, tensors: Sequence[Optional[torch.Tensor]]
) -> None:
    """Calls native code with the addresses of `tensors`."""
    steps, (batch, cells) = len(run.batch_sizes), run.state.cell.shape
    dim = run.state.hidden.size(1)
    strides = (4 * cells, cells)  # no gaps
    sizes = LstmSizes((SIZE * steps)(*run.batch_sizes), steps, batch, cells, dim, *strides)
    places = [None if tensor is None else tensor.data_ptr() for tensor in tensors]
    bounds = [math.nan if clip is None else clip for clip in run.clips]
    function(
        ctypes.byref(sizes),
        ctypes.byref(kind(*places, *bounds)),
        torch.get_num_threads(),
        HAS_TILES,
    )


class SizePadding(NamedTuple):
    """
    How many memory cells and outputs are added as padding. Their weights are zero, so their values
    and gradients stay zero.
    """

    cells: int
    dim: int

    @classmethod
    def of(cls, run: LstmRun) -> "SizePadding":
        dim, num_cells = run.weights.projection_weight.shape
        return cls(-num_cells % INPUTS_TOGETHER, -dim % INPUTS_TOGETHER)

    def pad_run(self, run: LstmRun) -> LstmRun:
        """The run with its weights, bias, state and dropout mask padded."""
        if not any(self):
            return run

        def pad_gates(numbers: torch.Tensor, *missing: int) -> torch.Tensor:
            """Pads each gate of a tensor whose first dimension is `4 * cell`."""
            return pad(numbers.unflatten(0, (4, -1)), (*missing, 0, self.cells)).flatten(0, 1)

        input_weight, recurrent_weight, projection_weight = run.weights
        weights = LstmWeights(
            pad_gates(input_weight, 0, 0),
            pad_gates(recurrent_weight, 0, self.dim),
            pad(projection_weight, (0, self.cells, 0, self.dim)),
        )
        return run._replace(
            weights=weights,
            bias=pad_gates(run.bias),
            state=self.pad_state(run.state),
            recurrent_dropout_mask=self.pad_outputs(run.recurrent_dropout_mask),
        )

    def pad_state(self, state: LstmState) -> LstmState:
        return LstmState(
            *(pad(part, (0, size)) for part, size in zip(state, (self.dim, self.cells)))
        )

    def pad_outputs(self, outputs: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
        """Pads vectors of shape `(rows, dim)`."""
        return None if outputs is None else pad(outputs, (0, self.dim))

    def unpad_state(self, state: LstmState) -> LstmState:
        return LstmState(unpadded(state.hidden, self.dim), unpadded(state.cell, self.cells))

    def unpad_gradients(self, gradients: LstmGradients) -> LstmGradients:
        num_cells = gradients.cell_outputs.size(1) - self.cells
        return LstmGradients(
            gradients.gates.unflatten(1, (4, -1))[:, :, :num_cells].flatten(1),
            unpadded(gradients.projected, self.dim),
            unpadded(gradients.cell_outputs, self.cells),
            self.unpad_state(gradients.state),
        )


def unpadded(rows: torch.Tensor, missing: int) -> torch.Tensor:
    """Removes the last numbers of vectors, shape `(..., size)`; the result is contiguous."""
    return rows[..., : rows.size(-1) - missing].contiguous()


def lstm_native(run: LstmRun) -> LstmResult:
    """Runs an LSTM that `can_run_native` by native code, and keeps what a backward pass needs."""
    padding = SizePadding.of(run)
    padded = lstm_native_aligned(padding.pad_run(run))
    if not any(padding):
        return padded
    assert padded.backward is not None
    return LstmResult(
        unpadded(padded.outputs, padding.dim),
        padding.unpad_state(padded.state),
        padded.kept,
        partial(_lstm_native_backward, padding, padded.backward),
    )


def _lstm_native_backward(
    padding: SizePadding,
    padded_backward: BackwardPass,
    run: LstmRun,
    kept: Sequence[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> LstmGradients:
    """
    The backward pass of `lstm_native`. With its first two arguments bound, it is an `LstmBackward`.
    """
    if state_gradients is not None:
        state_gradients = padding.pad_state(state_gradients)
    d_outputs = pad(output_gradients, (0, padding.dim))
    gradients = padded_backward(padding.pad_run(run), kept, d_outputs, state_gradients)
    return padding.unpad_gradients(gradients)
