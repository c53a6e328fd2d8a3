"""The backward pass of a run by PyTorch's products."""

from typing import Optional, Sequence

import torch

from elmo_scratch.kernels.linear import WeightProduct
from elmo_scratch.kernels.lstm.kept_run import LstmGradients, LstmRun, gradients_or_zeros
from elmo_scratch.kernels.lstm.lstm_state import LstmState
from elmo_scratch.kernels.lstm.memory_cells import MemoryCells
from elmo_scratch.kernels.lstm.stepwise_run import steps_of


def lstm_reference_backward(
    memory_cells: MemoryCells,
    run: LstmRun,
    kept: Sequence[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> LstmGradients:
    """
    With the `memory_cells` of `lstm_reference`, an `LstmBackward`. Only the products that each step
    needs are made here; those for the weights' gradients are made for all steps at once from what
    is returned.
    """
    _, recurrent_weight, projection_weight = run.weights
    num_steps, cell_size = len(run.batch_sizes), run.state.cell.size(1)
    to_hidden = WeightProduct(recurrent_weight.t(), run.dtype, num_steps)
    to_cell: Optional[WeightProduct] = None
    if len(projection_weight) > 0:
        to_cell = WeightProduct(projection_weight.t(), run.dtype, num_steps)
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
        # As the outputs know it, which may be rounded.
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
    # A part without rows, because there may be no step.
    none = d_gates[:0, :cell_size]
    cell_outputs = torch.cat([none, *(step.cell_output.output for step in steps)])
    return LstmGradients(d_gates, d_projected, cell_outputs, LstmState(d_hidden, d_cell))
