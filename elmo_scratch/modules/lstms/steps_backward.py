"""The backward pass through the steps of an LSTM."""

from typing import Optional, Sequence

import torch

from elmo_scratch.modules.lstms.kept_run import RunGradients
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.memory_cells import MemoryCells
from elmo_scratch.modules.lstms.steps import Clips, Step
from elmo_scratch.modules.products import WeightProduct


def run_steps_backward(
    to_hidden: WeightProduct,
    to_cell: Optional[WeightProduct],
    memory_cells: MemoryCells,
    steps: Sequence[Step],
    clips: Clips,
    output_scale: Optional[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: LstmState,
) -> RunGradients:
    """
    Goes through the steps of `run_steps` backwards. Only the products that each step needs are made
    here; those for the weights' gradients are made for all steps at once from what is returned.

    # Parameters

    to_hidden, to_cell : `WeightProduct`
        The recurrent weights and the projection, transposed.
    memory_cells : `MemoryCells`
        Those that `run_steps` used.
    steps : `Sequence[Step]`
        What `run_steps` kept.
    clips, output_scale
        As in `run_steps`.
    output_gradients : `torch.Tensor`
        Shape `(read, dim)`.
    state_gradients : `LstmState`
        Of shape `(batch, ...)`, of each sentence's last state.
    """
    num_rows, num_cells = output_gradients.size(0), state_gradients.cell.size(1)
    gates_gradients = output_gradients.new_empty(num_rows, 4 * num_cells, dtype=to_hidden.dtype)
    projected_gradients = torch.empty_like(output_gradients)
    # Sentences that end at a step start from the gradient of their last state.
    d_hidden, d_cell = (
        gradient.clone(memory_format=torch.contiguous_format) for gradient in state_gradients
    )
    # As the outputs know it, which may be rounded.
    bound = clips.projection
    if bound is not None and steps:
        bound = float(torch.tensor(bound, dtype=steps[0].output.dtype, device="cpu"))
    end = num_rows
    for step in reversed(steps):
        active = step.output.size(0)
        start = end - active
        d_output = d_hidden[:active].add_(output_gradients[start:end])
        if output_scale is not None:
            d_output *= output_scale[:active]
        if to_cell is not None:
            if bound is not None:
                torch.ops.aten.hardtanh_backward(
                    d_output, step.output.to(d_output.dtype), -bound, bound, grad_input=d_output
                )
            projected_gradients[start:end] = d_output
            d_output = to_cell(d_output)  # (active, cell)
        memory_cells.lstm_cell_backward(
            step.opened,
            step.previous_cell,
            clips.cell,
            d_output,
            d_cell[:active],
            gates_gradients[start:end],
        )
        d_hidden[:active] = to_hidden(gates_gradients[start:end])
        end = start
    # A part without rows, because there may be no step.
    none = gates_gradients[:0, :num_cells]
    opened = torch.cat([none, *(step.opened.output for step in steps)])
    return RunGradients(gates_gradients, projected_gradients, opened, LstmState(d_hidden, d_cell))
