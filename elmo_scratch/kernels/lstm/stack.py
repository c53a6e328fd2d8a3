"""All layers of a stack of LSTMs by one call of compiled code, without gradients."""

import ctypes
import math
import operator
from functools import partial
from typing import List, NamedTuple, Sequence, Tuple

import torch
from torch.nn.functional import pad

from elmo_scratch.kernels.library import (
    COUNT,
    HAS_TILES,
    INSTRUCTIONS,
    LIBRARY,
    SIZE,
    LstmLayer,
    LstmLayers,
    LstmSizes,
    is_plain,
    pack_weights,
    simd_functions,
)
from elmo_scratch.kernels.lstm.native import Panels, SizePadding, unpadded
from elmo_scratch.kernels.lstm.run import Clips, LstmRun, LstmState, LstmWeights
from elmo_scratch.kernels.memory import FrozenWeightCache, buffer_pool

READ_LAYERS = simd_functions(
    LIBRARY,
    "read_layers",
    INSTRUCTIONS,
    [ctypes.POINTER(LstmSizes), ctypes.POINTER(LstmLayers), COUNT, COUNT],
)
"""By the precision of products."""

GATES_AT_ONCE = 2**22
"""
The number of gates computed before the steps that use them: some 16 MiB in float32, with enough
positions for the full rate.
"""

NUMBERS_BETWEEN = 32
"""
Numbers between the gates of two positions, and between their cells' outputs: whole cache lines in
each type. Without them all positions would share few sets of a cache, because sizes are often
powers of two.
"""


class StackRun(NamedTuple):
    """
    All arguments of a run of a stack of LSTMs. Each layer's inputs and outputs have the size `dim`.

    # Parameters

    weights : `Sequence[LstmWeights]`
        Each layer's matrices.
    biases : `Sequence[torch.Tensor]`
        Each layer's bias, see `LstmRun`.
    dtype : `torch.dtype`
        The precision of products.
    inputs : `torch.Tensor`
        Shape `(packed, dim)`, in the order of a `PackedOrder`.
    batch_sizes : `Sequence[int]`
        How many sentences are read at each step; never grows.
    state : `LstmState`
        Of shape `(layers, batch, ...)`. Sentences without a position come last.
    clips : `Clips`
        Bounds of cells and outputs, in all layers.
    adds_inputs : `bool`
        Whether the inputs of each layer but the first are added to its outputs.
    """

    weights: Sequence[LstmWeights]
    biases: Sequence[torch.Tensor]
    dtype: torch.dtype
    inputs: torch.Tensor
    batch_sizes: Sequence[int]
    state: LstmState
    clips: Clips
    adds_inputs: bool

    def parameters(self) -> List[torch.Tensor]:
        """The weights and biases of all layers."""
        return [weight for matrices in self.weights for weight in matrices] + [*self.biases]

    @classmethod
    def of_one(cls, run: LstmRun) -> "StackRun":
        """A stack of one layer."""
        state = LstmState(*(part.unsqueeze(0) for part in run.state))
        return cls(
            [run.weights],
            [run.bias],
            run.dtype,
            run.inputs,
            run.batch_sizes,
            state,
            run.clips,
            False,
        )

    def layer(self, number: int) -> LstmRun:
        """The run of one layer over the inputs of the first."""
        return LstmRun(
            self.weights[number],
            self.dtype,
            self.biases[number],
            self.inputs,
            self.batch_sizes,
            LstmState(self.state.hidden[number], self.state.cell[number]),
            self.clips,
            None,
        )


class StackResult(NamedTuple):
    """
    The `outputs` of each layer, of shape `(packed, dim)`, and each sentence's last `state`, of
    shape `(layers, batch, ...)`.
    """

    outputs: List[torch.Tensor]
    state: LstmState


def can_read_stack(run: StackRun) -> bool:
    """Whether there is native code for a run, and nobody wants its gradients."""
    parameters, (hidden, cell), batch_sizes = run.parameters(), run.state, run.batch_sizes
    tensors = [run.inputs, hidden, cell, *parameters]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return False
    if not is_plain(*tensors, on="cpu"):
        return False
    layers, dim, num_cells = len(run.weights), hidden.size(-1), cell.size(-1)
    shapes = [(4 * num_cells, dim), (4 * num_cells, dim), (dim, num_cells)]
    return (
        run.dtype in READ_LAYERS
        and min(layers, dim, num_cells, len(batch_sizes)) > 0
        and batch_sizes[-1] > 0
        and all(map(operator.ge, batch_sizes, batch_sizes[1:]))
        and run.inputs.shape == (sum(batch_sizes), dim)
        and hidden.dim() == 3
        and hidden.size(1) >= batch_sizes[0]
        and hidden.shape == (layers, hidden.size(1), dim)
        and cell.shape == (layers, hidden.size(1), num_cells)
        and [tuple(weight.shape) for matrices in run.weights for weight in matrices]
        == shapes * layers
        and all(bias.shape == (4 * num_cells,) for bias in run.biases)
        and {tensor.dtype for tensor in tensors} == {torch.float32}
        and not torch.is_autocast_enabled("cpu")
    )


class PackedLayers(NamedTuple):
    """
    The weights of a stack, padded and packed. `panels` has for each layer those of its input
    weights, of shape `(4 * cell, dim)`, and its other `Panels`. `layers`, an array of structs, has
    their addresses.
    """

    layers: "ctypes.Array[LstmLayer]"
    panels: List[Tuple[torch.Tensor, Panels]]
    padding: SizePadding

    @classmethod
    def of(cls, run: StackRun) -> "PackedLayers":
        padding = SizePadding.of(run.layer(0))
        panels: List[Tuple[torch.Tensor, Panels]] = []
        for number in range(len(run.weights)):
            padded = padding.pad_run(run.layer(number))
            input_weight = pad(padded.weights.input_weight, (0, padding.dim))
            packed = pack_weights(input_weight, run.dtype, HAS_TILES, is_of_gates=True)
            panels.append((packed, Panels.of(padded)))
        places = ((part.data_ptr() for part in (inputs, *rest)) for inputs, rest in panels)
        layers = (LstmLayer * len(panels))(*(LstmLayer(*own) for own in places))
        return cls(layers, panels, padding)


StackCache = FrozenWeightCache[PackedLayers]
"""The packed weights of one stack, while they are frozen."""


def read_stack(run: StackRun, cache: StackCache) -> StackResult:
    """
    Runs all layers of a stack that `can_read_stack`. A sentence's result is independent of the
    others, to the bit.

    # Parameters

    run : `StackRun`
        All inputs of the run.
    cache : `StackCache`
        The stack's own cache.

    # Returns

    `StackResult`
        In memory of its own.
    """
    packed = cache.of(run.parameters(), run.dtype, partial(PackedLayers.of, run))
    inputs, state, padding = run.inputs.contiguous(), run.state, packed.padding
    if any(padding):
        inputs, state = pad(inputs, (0, padding.dim)), padding.pad_state(state)
    # Compiled code writes the last states to the place of the first.
    hidden, cell = (part.clone(memory_format=torch.contiguous_format) for part in state)
    (positions, dim), (layers, batch, num_cells) = inputs.shape, cell.shape
    at_once = min(positions, max(GATES_AT_ONCE // (4 * num_cells), run.batch_sizes[0]))
    gate_stride, opened_stride = (size + NUMBERS_BETWEEN for size in (4 * num_cells, num_cells))
    outputs = buffer_pool.empty((layers, positions, dim), torch.float32)
    # What a layer reads and makes, gates, the cells' outputs, and the last outputs of a sentence.
    gates, opened = (at_once, gate_stride), (at_once, opened_stride)
    shapes = [(positions, dim), (positions, dim), gates, opened, (batch, dim)]
    work = [buffer_pool.empty(shape, run.dtype) for shape in shapes]
    work.append(buffer_pool.empty((at_once, num_cells), torch.float32))  # memory cells
    steps = len(run.batch_sizes)
    batch_sizes = (SIZE * steps)(*run.batch_sizes)
    sizes = LstmSizes(batch_sizes, steps, batch, num_cells, dim, gate_stride, opened_stride)
    struct = LstmLayers(
        packed.layers,
        layers,
        at_once,
        *(tensor.data_ptr() for tensor in (inputs, outputs, hidden, cell, *work)),
        *(math.nan if clip is None else clip for clip in run.clips),
        run.adds_inputs,
    )
    READ_LAYERS[run.dtype](
        ctypes.byref(sizes), ctypes.byref(struct), torch.get_num_threads(), HAS_TILES
    )
    last = LstmState(hidden, cell)
    if any(padding):
        made = [unpadded(layer, padding.dim) for layer in outputs]
        return StackResult(made, padding.unpad_state(last))
    # Parts of one tensor may not be written to one by one until they are detached from it.
    return StackResult([layer.detach() for layer in outputs], last)
