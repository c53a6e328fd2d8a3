"""An LSTM step by step in ordinary operations, and ours over the same padded batch."""

from typing import List, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.modules import LstmState, PackedOrder, ProjectedLstm
from elmo_scratch.modules.sequences import PackedVectors


class PaddedOutput(NamedTuple):
    """Outputs of shape `(batch, positions, dim)`, zero in the padding, and the last states."""

    outputs: torch.Tensor
    hidden: torch.Tensor
    cell: torch.Tensor


class Clipped(NamedTuple):
    """How many numbers of real positions the clips have changed, and of how many."""

    cells: int
    outputs: int
    of_cells: int
    of_outputs: int


def mask_of(lengths: Sequence[int]) -> torch.Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def read_plainly(
    lstm: ProjectedLstm,
    inputs: torch.Tensor,
    lengths: Sequence[int],
    state: LstmState,
    dropout_mask: Optional[torch.Tensor] = None,
    clipped: Optional[List[Clipped]] = None,
) -> PaddedOutput:
    """Every row at every step; those that have ended keep their state and give zeros."""
    hidden, cell = state
    outputs: List[torch.Tensor] = []
    for position in range(inputs.size(1)):
        is_read = (torch.tensor(lengths) > position).unsqueeze(1)
        gates = inputs[:, position] @ lstm.input_weight.t() + hidden @ lstm.recurrent_weight.t()
        i, j, f, o = (gates + lstm.bias).chunk(4, dim=1)
        unclipped = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(j)
        new_cell = unclipped
        if lstm.cell_clip is not None:
            new_cell = unclipped.clamp(-lstm.cell_clip, lstm.cell_clip)
        projected = torch.sigmoid(o) * torch.tanh(new_cell)
        output = projected
        if lstm.projection_weight is not None:
            output = projected = projected @ lstm.projection_weight.t()
            if lstm.projection_clip is not None:
                output = projected.clamp(-lstm.projection_clip, lstm.projection_clip)
        if clipped is not None:
            bites = [(new_cell != unclipped) & is_read, (output != projected) & is_read]
            sizes = [int(is_read.sum()) * size for size in (cell.size(1), hidden.size(1))]
            clipped.append(Clipped(*(int(bite.sum()) for bite in bites), *sizes))
        if dropout_mask is not None:
            output = output * dropout_mask
        hidden = torch.where(is_read, output, hidden)
        cell = torch.where(is_read, new_cell, cell)
        outputs.append(output * is_read)
    return PaddedOutput(torch.stack(outputs, dim=1), hidden, cell)


def read_packed(
    lstm: ProjectedLstm, inputs: torch.Tensor, lengths: Sequence[int], state: LstmState
) -> PaddedOutput:
    """What `lstm` makes of a batch, laid out as `read_plainly` does."""
    mask = mask_of(lengths)
    order = PackedOrder.of(mask)
    done = lstm(
        PackedVectors(inputs.flatten(0, 1)[order.left_to_right], order.batch_sizes),
        state.rows(order.sorted_indices),
    )
    empty = done.outputs.new_zeros(mask.numel(), done.outputs.size(1))
    outputs = empty.index_copy(0, order.left_to_right, done.outputs)
    return PaddedOutput(outputs.view(*mask.shape, -1), *done.state.rows(order.unsorted_indices))
