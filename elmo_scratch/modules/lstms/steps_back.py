"""The way back through the steps of an LSTM."""

from typing import NamedTuple, Optional, Sequence

import torch

from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.steps import Clips, Step, tanh
from elmo_scratch.modules.products import WeightProduct


class ReadGradients(NamedTuple):
    """
    Gradients of all that went into `read`.

    # Parameters

    gates : `torch.Tensor`
        Shape `(read, 4 * cell)`, before the gates' nonlinearities, in the precision of products.
    bias : `torch.Tensor`
        Shape `(4 * cell,)`: their sum.
    projected : `torch.Tensor`
        Shape `(read, dim)`, before clipping.
    state : `LstmState`
        Of shape `(batch, ...)`.
    """

    gates: torch.Tensor
    bias: torch.Tensor
    projected: torch.Tensor
    state: LstmState


def read_back(
    to_hidden: WeightProduct,
    to_cell: Optional[WeightProduct],
    steps: Sequence[Step],
    clips: Clips,
    output_scale: Optional[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: LstmState,
) -> ReadGradients:
    """
    Goes through the steps of `read` backwards. Only the products that each step needs are made
    here; those for the weights' gradients are made for all steps at once from what is returned.

    # Parameters

    to_hidden, to_cell : `WeightProduct`
        The recurrent weights and the projection, transposed.
    steps : `Sequence[Step]`
        What `read` kept.
    clips, output_scale
        As in `read`.
    output_gradients : `torch.Tensor`
        Shape `(read, dim)`.
    state_gradients : `LstmState`
        Of shape `(batch, ...)`, of each sentence's last state.
    """
    aten = torch.ops.aten
    num_cells = state_gradients.cell.size(1)
    gates_gradients = output_gradients.new_empty(
        output_gradients.size(0), 4 * num_cells, dtype=to_hidden.dtype
    )
    bias_gradient = output_gradients.new_zeros(4 * num_cells)
    projected_gradients = torch.empty_like(output_gradients)
    d_hidden, d_cell = state_gradients
    # What has been handed back so far, for the sentences read at the step after the present one.
    later_hidden = d_hidden.new_zeros(0, d_hidden.size(1))
    later_cell = d_cell.new_zeros(0, num_cells)
    end = output_gradients.size(0)
    for step in reversed(steps):
        width = step.cell.size(0)
        start = end - width
        # Sentences that end here start from the gradient of their last state.
        hidden_gradient = torch.cat([later_hidden, d_hidden[later_hidden.size(0) : width]])
        cell_gradient = torch.cat([later_cell, d_cell[later_cell.size(0) : width]])
        hidden_gradient += output_gradients[start:end]
        if output_scale is not None:
            hidden_gradient *= output_scale[:width]
        squashed = tanh(step.cell)
        i, j, f, o = step.gates.chunk(4, dim=1)
        if to_cell is not None:
            if clips.projection is not None:
                # As the outputs know it, which may be rounded.
                bound = float(torch.tensor(clips.projection, dtype=step.output.dtype))
                hidden_gradient = aten.hardtanh_backward(
                    hidden_gradient, step.output.to(squashed.dtype), -bound, bound
                )
            projected_gradients[start:end] = hidden_gradient
            hidden_gradient = to_cell(hidden_gradient).to(squashed.dtype)  # (width, cell)
        cell_gradient += aten.tanh_backward(hidden_gradient * o, squashed)
        if clips.cell is not None:
            cell_gradient = aten.hardtanh_backward(
                cell_gradient, step.cell, -clips.cell, clips.cell
            )
        gates_gradient = torch.empty_like(step.gates)
        d_i, d_j, d_f, d_o = gates_gradient.chunk(4, dim=1)
        torch.mul(cell_gradient, j, out=d_i)
        aten.sigmoid_backward(d_i, i, grad_input=d_i)
        torch.mul(cell_gradient, i, out=d_j)
        aten.tanh_backward(d_j, j, grad_input=d_j)
        torch.mul(cell_gradient, step.previous_cell, out=d_f)
        aten.sigmoid_backward(d_f, f, grad_input=d_f)
        torch.mul(hidden_gradient, squashed, out=d_o)
        aten.sigmoid_backward(d_o, o, grad_input=d_o)
        later_cell = cell_gradient.mul_(f)
        bias_gradient += gates_gradient.sum(dim=0)
        gates_gradients[start:end] = gates_gradient
        later_hidden = to_hidden(gates_gradients[start:end]).to(squashed.dtype)
        end = start
    width = later_hidden.size(0)
    return ReadGradients(
        gates_gradients,
        bias_gradient,
        projected_gradients,
        LstmState(
            torch.cat([later_hidden, d_hidden[width:]]), torch.cat([later_cell, d_cell[width:]])
        ),
    )
