"""An LSTM as one node of PyTorch's graph, with a backward pass of its own."""

from typing import Any, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_scratch.modules.lstms.filled_run import run_filled
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.replay import RecordedSteps, run_replayed
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights
from elmo_scratch.modules.lstms.stepwise_run import run_stepwise
from elmo_scratch.modules.products import WeightProduct, weight_gradients


class RunSettings(NamedTuple):
    """
    All that an LSTM reads by which is not a tensor with a gradient.

    # Parameters

    dtype : `torch.dtype`
        The precision of products.
    products : `Optional[LstmProducts]`
        The weights, prepared for a run step by step; `None` for one by recordings or compiled code.
    recorded : `Optional[RecordedSteps]`
        Recordings, if they are to be replayed.
    batch_sizes : `Sequence[int]`
        How many sentences are read at each step.
    clips : `Clips`
        Bounds of cells and outputs.
    output_scale : `Optional[torch.Tensor]`
        As in `read`.
    """

    dtype: torch.dtype
    products: Optional[LstmProducts]
    recorded: Optional[RecordedSteps]
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

        settings : `RunSettings`
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
        dtype, products, recorded, batch_sizes, clips, output_scale = settings
        weights = LstmWeights(input_weight, recurrent_weight, projection_weight)
        read = (bias, inputs, batch_sizes, LstmState(hidden, cell), clips, output_scale)
        if recorded is not None:
            done = run_replayed(recorded, weights, dtype, *read)
        elif products is not None:
            done = run_stepwise(weights, dtype, products, *read)
        else:
            done = run_filled(weights, dtype, *read)
        ctx.set_materialize_grads(False)
        ctx.batch_sizes, ctx.clips = batch_sizes, clips
        ctx.dtype, ctx.run_backward = dtype, done.backward
        # Unlike attributes, these are let go as soon as the backward pass is done, though a trainer
        # holds on to the loss until it has the next one.
        ctx.save_for_backward(*(inputs, *weights, hidden, done.outputs, output_scale, *done.kept))
        return done.outputs, done.state.hidden, done.state.cell

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, *gradients: Optional[torch.Tensor]
    ) -> Tuple[Optional[torch.Tensor], ...]:
        """The gradients of all that `forward` took, in its order."""
        # Asked for all: it is an error if one of the weights has changed since.
        inputs, input_weight, _, projection_weight, hidden, outputs, *others = ctx.saved_tensors
        output_scale, *kept = others
        output_gradients, state_gradients = _filled(gradients, outputs, hidden, input_weight)
        dtype: torch.dtype = ctx.dtype
        back = ctx.run_backward(
            kept,
            ctx.batch_sizes,
            ctx.clips,
            output_scale,
            output_gradients,
            state_gradients,
        )
        gates = back.gates  # (read, 4 * cell)
        needed = ctx.needs_input_grad

        d_inputs = of_inputs = of_hidden = of_bias = of_projection = None
        if needed[1]:
            d_inputs = WeightProduct(input_weight.t(), dtype, num_uses=1)(gates).to(inputs.dtype)
        if any((needed[2], needed[3], needed[5])):
            before = _before(hidden, outputs, ctx.batch_sizes)
            made = weight_gradients(gates, [inputs, before], inputs.dtype)
            (of_inputs, of_hidden), of_bias = made
        if needed[4] and len(projection_weight) > 0:
            projected = back.projected.to(dtype)
            (of_projection,) = weight_gradients(projected, [back.opened], inputs.dtype).weights
        return (
            None,
            d_inputs,
            of_inputs if needed[2] else None,
            of_hidden if needed[3] else None,
            of_projection,
            of_bias if needed[5] else None,
            back.state.hidden if needed[6] else None,
            back.state.cell if needed[7] else None,
        )


def _filled(
    gradients: Sequence[Optional[torch.Tensor]],
    outputs: torch.Tensor,
    hidden: torch.Tensor,
    input_weight: torch.Tensor,
) -> Tuple[torch.Tensor, Optional[LstmState]]:
    """The gradients of outputs and of last states, `None` if no last state has one."""
    of_outputs, of_hidden, of_cell = gradients
    if of_outputs is None:
        of_outputs = torch.zeros_like(outputs)
    if of_hidden is None and of_cell is None:
        return of_outputs, None
    if of_hidden is None:
        of_hidden = torch.zeros_like(hidden)
    if of_cell is None:
        of_cell = hidden.new_zeros(len(hidden), len(input_weight) // 4)
    return of_outputs, LstmState(of_hidden, of_cell)


def _before(
    hidden: torch.Tensor, outputs: torch.Tensor, batch_sizes: Sequence[int]
) -> torch.Tensor:
    """The output that each step started from, of shape `(read, dim)`."""
    if batch_sizes and batch_sizes[-1] == batch_sizes[0]:
        return torch.cat([hidden[: batch_sizes[0]], outputs[: -batch_sizes[0]]])
    steps = [hidden, *outputs.split(list(batch_sizes))] if batch_sizes else []
    # A part without rows, because there may be no step.
    return torch.cat([hidden[:0], *(step[:active] for step, active in zip(steps, batch_sizes))])
