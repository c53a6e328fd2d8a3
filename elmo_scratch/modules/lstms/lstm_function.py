"""An LSTM as one node of PyTorch's graph, with a backward pass of its own."""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.memory_cells import Opened
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights, Step, run_steps
from elmo_scratch.modules.lstms.steps_backward import run_steps_backward
from elmo_scratch.modules.products import WeightProduct

ROWS_OF_A_PIECE = 1024
"""Rows that are multiplied together where the product is converted to a wider type."""


class RunSettings(NamedTuple):
    """
    All that an LSTM reads by which is not a tensor with a gradient.

    # Parameters

    weights : `LstmWeights`
        The weights that are given to `LstmFunction`, in the precision of products.
    products : `LstmProducts`
        The same, prepared.
    batch_sizes : `Sequence[int]`
        How many sentences are read at each step.
    clips : `Clips`
        Bounds of cells and outputs.
    output_scale : `Optional[torch.Tensor]`
        As in `read`.
    """

    weights: LstmWeights
    products: LstmProducts
    batch_sizes: Sequence[int]
    clips: Clips
    output_scale: Optional[torch.Tensor]


class LstmFunction(torch.autograd.Function):
    """
    The steps of an LSTM. In the backward pass each weight's gradient is one large product over all
    steps, where PyTorch would make a small one at each and add them up; and of each step only
    gates, cells and outputs are kept.
    """

    @staticmethod
    def forward(
        ctx: Any,
        settings: RunSettings,
        inputs: torch.Tensor,
        input_weight: torch.Tensor,
        recurrent_weight: torch.Tensor,
        projection_weight: torch.Tensor,
        bias: torch.Tensor,
        hidden: torch.Tensor,
        cell: torch.Tensor,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        # Parameters

        reading : `RunSettings`
            How to read.
        inputs : `torch.Tensor`
            Shape `(read, input_dim)`.
        input_weight : `torch.Tensor`
            Shape `(4 * cell, input_dim)`.
        recurrent_weight : `torch.Tensor`
            Shape `(4 * cell, dim)`.
        projection_weight : `torch.Tensor`
            Shape `(dim, cell)`, or `(0, cell)` where outputs are not projected.
        bias : `torch.Tensor`
            Shape `(4 * cell,)`, the forget gate's constant included.
        hidden : `torch.Tensor`
            Shape `(batch, dim)`.
        cell : `torch.Tensor`
            Shape `(batch, cell)`.

        # Returns

        `Tuple[torch.Tensor, torch.Tensor, torch.Tensor]`
            Outputs of shape `(read, dim)`, and the last states, shaped as `hidden` and `cell`.
        """
        done = run_steps(
            settings.products,
            bias,
            inputs,
            settings.batch_sizes,
            LstmState(hidden, cell),
            settings.clips,
            settings.output_scale,
            keeps_steps=True,
        )
        ctx.batch_sizes, ctx.clips = settings.batch_sizes, settings.clips
        ctx.dtype = settings.products.from_hidden.dtype
        ctx.memory_cells = done.memory_cells
        ctx.is_projected = settings.products.projection is not None
        # Unlike attributes, these are let go as soon as the backward pass is done, though a trainer
        # holds on to the loss until it has the next one.
        ctx.save_for_backward(
            *(inputs, input_weight, recurrent_weight, projection_weight, hidden, done.outputs),
            *(*settings.weights, settings.output_scale),
            *(tensor for step in done.steps for tensor in _tensors_of(step)),
        )
        return done.outputs, done.state.hidden, done.state.cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        """The gradients of all that `forward` took, in its order."""
        output_gradients, hidden_gradients, cell_gradients = gradients
        # Asked for all: it is an error if one of the weights has changed since.
        inputs, _, _, _, hidden, outputs, *others = ctx.saved_tensors
        input_weight, recurrent_weight, projection_weight, output_scale, *kept = others
        steps = _steps_of(kept)
        dtype: torch.dtype = ctx.dtype
        back = run_steps_backward(
            WeightProduct(recurrent_weight.t(), dtype, len(steps)),
            WeightProduct(projection_weight.t(), dtype, len(steps)) if ctx.is_projected else None,
            ctx.memory_cells,
            steps,
            ctx.clips,
            output_scale,
            output_gradients,
            LstmState(hidden_gradients, cell_gradients),
        )
        gates = back.gates  # (read, 4 * cell)
        needed = ctx.needs_input_grad

        def product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
            return _product(left.to(dtype), right.to(dtype), inputs.dtype)

        return (
            None,
            product(gates, input_weight) if needed[1] else None,
            product(gates.t(), inputs) if needed[2] else None,
            product(gates.t(), _before(hidden, outputs, ctx.batch_sizes)) if needed[3] else None,
            product(back.projected.t(), _opened(steps, gates))
            if needed[4] and ctx.is_projected
            else None,
            gates.sum(dim=0).to(inputs.dtype) if needed[5] else None,
            back.state.hidden if needed[6] else None,
            back.state.cell if needed[7] else None,
        )


def _tensors_of(step: Step) -> List[torch.Tensor]:
    """All of a step."""
    return [step.previous_cell, *step.opened, step.output]


def _steps_of(tensors: Sequence[torch.Tensor]) -> List[Step]:
    """The steps whose tensors these are, one step after the other."""
    parts = [iter(tensors)] * (2 + len(Opened._fields))
    return [Step(before, Opened(*opened), output) for before, *opened, output in zip(*parts)]


def _product(left: torch.Tensor, right: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The product, each number rounded to the factors' precision, as a matrix of type `dtype`."""
    if left.dtype == dtype:
        return left @ right
    product = right.new_empty(left.size(0), right.size(1), dtype=dtype)
    # Piece by piece, so that the rounded numbers never leave the processor's caches.
    for place, rows in zip(product.split(ROWS_OF_A_PIECE), left.split(ROWS_OF_A_PIECE)):
        place.copy_(rows @ right)
    return product


def _before(
    hidden: torch.Tensor, outputs: torch.Tensor, batch_sizes: Sequence[int]
) -> torch.Tensor:
    """The output that each step started from, of shape `(read, dim)`."""
    steps = [hidden, *outputs.split(list(batch_sizes))] if batch_sizes else []
    # A part without rows, because there may be no step.
    return torch.cat([hidden[:0], *(step[:active] for step, active in zip(steps, batch_sizes))])


def _opened(steps: Sequence[Step], gates: torch.Tensor) -> torch.Tensor:
    """What each step projected, `σ(o) tanh(c)`, of shape `(read, cell)`."""
    none = gates.chunk(4, dim=1)[0][:0]
    return torch.cat([none, *(step.opened.output for step in steps)])
