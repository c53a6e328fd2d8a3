"""The steps of an LSTM by PyTorch's products: the definition that the faster ways are held to."""

from functools import partial
from typing import Iterator, List, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.kernels.linear import PackedLinear
from elmo_scratch.kernels.lstm.cells import CellOutput, MemoryCells, memory_cells_for
from elmo_scratch.kernels.lstm.run import (
    LstmGradients,
    LstmResult,
    LstmRun,
    LstmState,
    gradients_or_zeros,
    join_ended,
    step_groups,
)


class Step(NamedTuple):
    """
    One step of `active` sentences: memory before it, its result, and its outputs of shape
    `(active, dim)`, clipped, before dropout.
    """

    previous_cell: torch.Tensor
    cell_output: CellOutput
    output: torch.Tensor


def steps_of(run: LstmRun, kept: Sequence[torch.Tensor]) -> List[Step]:
    """The steps of a run, from `kept`: each step's `CellOutput` and output, step after step."""
    steps: List[Step] = []
    previous = run.state.cell
    parts = [iter(kept)] * (len(CellOutput._fields) + 1)
    for *cell_output, output in zip(*parts):
        step = Step(previous[: len(output)], CellOutput(*cell_output), output)
        steps.append(step)
        previous = step.cell_output.cell
    return steps


def lstm_reference_backward(
    memory_cells: MemoryCells,
    run: LstmRun,
    kept: Sequence[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> LstmGradients:
    """
    The backward pass of `lstm_reference`. With `memory_cells` bound, it is an `LstmBackward`. Only
    the products that each step needs are made here; the weights' gradients are made from the
    result, for all steps at once.
    """
    _, recurrent_weight, projection_weight = run.weights
    num_steps, cell_size = len(run.batch_sizes), run.state.cell.size(1)
    to_hidden = PackedLinear(recurrent_weight.t(), run.dtype, num_steps)
    to_cell: Optional[PackedLinear] = None
    if len(projection_weight) > 0:
        to_cell = PackedLinear(projection_weight.t(), run.dtype, num_steps)
    end = len(output_gradients)
    d_gates = output_gradients.new_empty(end, 4 * cell_size, dtype=to_hidden.dtype)
    d_projected = torch.empty_like(output_gradients)
    # Sentences that end at a step start from the gradient of their last state.
    d_hidden, d_cell = (
        gradient.clone(memory_format=torch.contiguous_format)
        for gradient in gradients_or_zeros(state_gradients, output_gradients, run.state.cell)
    )
    steps, mask = steps_of(run, kept), run.recurrent_dropout_mask
    bound = run.clips.projection
    if bound is not None and steps:
        # Rounded like the outputs that it is compared with.
        bound = float(torch.tensor(bound, dtype=steps[0].output.dtype, device="cpu"))
    for step in reversed(steps):
        active = len(step.output)
        start = end - active
        d_output = d_hidden[:active].add_(output_gradients[start:end])
        if mask is not None:
            d_output *= mask[:active]
        if to_cell is not None:
            if bound is not None:
                torch.ops.aten.hardtanh_backward(
                    d_output, step.output.to(d_output.dtype), -bound, bound, grad_input=d_output
                )
            d_projected[start:end] = d_output
            d_output = to_cell(d_output)  # (active, cell)
        memory_cells.lstm_cell_backward(
            step.cell_output,
            step.previous_cell,
            run.clips.cell,
            d_output,
            d_cell[:active],
            d_gates[start:end],
        )
        d_hidden[:active] = to_hidden(d_gates[start:end])
        end = start
    # The empty first part is for runs without steps.
    none = d_gates[:0, :cell_size]
    cell_outputs = torch.cat([none, *(step.cell_output.output for step in steps)])
    return LstmGradients(d_gates, d_projected, cell_outputs, LstmState(d_hidden, d_cell))


ROWS_AT_ONCE = 256
"""
The input's share of the gates is computed for about so many positions in one product: enough for
the full rate, and few enough for the CPU's caches.
"""

ROWS_ON_A_GPU = 4096
"""The same on a GPU, where a product of few rows takes as long as one of many."""


class LstmProducts(NamedTuple):
    """The packed weights of an LSTM, and its `gate_bias`."""

    inputs: PackedLinear
    recurrent: PackedLinear
    projection: Optional[PackedLinear]
    bias: torch.Tensor

    @classmethod
    def of(cls, run: LstmRun, is_only_run: bool = False) -> "LstmProducts":
        """Packs the weights of `run`, for all runs with them or for this one only."""
        weights, num_groups, num_steps = run.weights, None, None
        if is_only_run:
            num_groups = sum(1 for _ in step_groups(run.batch_sizes, ROWS_AT_ONCE))
            num_steps = len(run.batch_sizes)
        projection: Optional[PackedLinear] = None
        if len(weights.projection_weight) > 0:
            projection = PackedLinear(weights.projection_weight, run.dtype, num_steps)
        return cls(
            PackedLinear(weights.input_weight, run.dtype, num_groups),
            PackedLinear(weights.recurrent_weight, run.dtype, num_steps),
            projection,
            run.gate_bias(),
        )


def lstm_reference(run: LstmRun, products: LstmProducts, needs_grad: bool = False) -> LstmResult:
    """Runs an LSTM with the packed weights `products`."""
    clips, mask = run.clips, run.recurrent_dropout_mask
    hidden, cell = run.state.hidden.to(run.dtype), run.state.cell
    memory_cells = memory_cells_for(run.dtype, cell, hidden, run.inputs, run.bias)
    outputs = hidden.new_empty(len(run.inputs), hidden.size(1))
    ended: List[LstmState] = []
    kept: List[torch.Tensor] = []
    start = 0
    for active, input_share in zip(run.batch_sizes, _input_shares(run, products)):
        if active < len(hidden):
            ended.append(LstmState(hidden[active:].to(cell.dtype), cell[active:]))
            hidden, cell = hidden[:active], cell[:active]
        gates = products.recurrent(hidden, summand=input_share)
        cell_output = memory_cells.lstm_cell(gates, cell, clips.cell)
        output = cell_output.output
        if products.projection is not None:
            output = products.projection(output)
            if clips.projection is not None:
                output.clamp_(-clips.projection, clips.projection)
        if needs_grad:
            kept += [*cell_output, output]
        cell = cell_output.cell
        hidden = outputs[start : start + active]
        if mask is None:
            hidden.copy_(output)
        else:
            torch.mul(output, mask[:active], out=hidden)
        start += active
    ended.append(LstmState(hidden.to(cell.dtype), cell))
    result = LstmResult(outputs.to(cell.dtype), join_ended(ended))
    if not needs_grad:
        return result
    return result._replace(kept=kept, backward=partial(lstm_reference_backward, memory_cells))


def _input_shares(run: LstmRun, products: LstmProducts) -> Iterator[torch.Tensor]:
    """Yields each step's share of the inputs in its gates, of shape `(active, 4 * cell)`."""
    start = 0
    at_once = ROWS_AT_ONCE if run.inputs.device.type == "cpu" else ROWS_ON_A_GPU
    for group in step_groups(run.batch_sizes, at_once):
        end = start + sum(group)
        yield from products.inputs(run.inputs[start:end], products.bias).split(group)
        start = end
