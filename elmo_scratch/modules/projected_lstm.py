"""One layer of an LSTM whose output is projected and whose cells and outputs are clipped."""

from typing import Optional

import torch


class ProjectedLstm(torch.nn.Module):
    """
    An LSTM that reads a sequence in the order in which it lies, from a state of zeros.

        i, j, f, o = x W + h U + b
        c = clip(σ(f + 1) c + σ(i) tanh(j))
        h = clip((σ(o) tanh(c)) P)

    # Parameters

    input_dim : `int`
        The size of an input vector.
    dim : `int`
        The size of an output vector, after the projection.
    cell_size : `int`
        The number of memory cells.
    cell_clip : `float`, optional (default = `3.0`, the released models' value)
        Cells are kept in `[-cell_clip, cell_clip]` after every step. `None` never clips.
    projection_clip : `float`, optional (default = `3.0`, the released models' value)
        The same for outputs.

    # Source

    Sak, Senior and Beaufays 2014, "Long Short-Term Memory Based Recurrent Neural Network
    Architectures for Large Vocabulary Speech Recognition", section 2; the order of the gates, the
    constant in the forget gate and the clipping as in `tf.nn.rnn_cell.LSTMCell`, which `bilm-tf`
    uses.
    """

    def __init__(
        self,
        input_dim: int,
        dim: int,
        cell_size: int,
        *,
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.cell_size = cell_size
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.input_weight = torch.nn.Parameter(torch.empty(4 * cell_size, input_dim))
        self.recurrent_weight = torch.nn.Parameter(torch.empty(4 * cell_size, dim))
        self.bias = torch.nn.Parameter(torch.zeros(4 * cell_size))
        self.projection_weight = torch.nn.Parameter(torch.empty(dim, cell_size))
        for weight in (self.input_weight, self.recurrent_weight, self.projection_weight):
            torch.nn.init.xavier_uniform_(weight)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(batch, positions, input_dim)`. Padding belongs after the real positions of a
            row, where it can't reach them.

        # Returns

        `torch.Tensor`
            Shape `(batch, positions, dim)`.
        """
        batch = inputs.size(0)
        # The input's share of every gate, for all positions in one product.
        from_inputs = torch.nn.functional.linear(
            inputs.transpose(0, 1), self.input_weight, self.bias
        )  # (positions, batch, 4 * cell)
        hidden = inputs.new_zeros(batch, self.dim)
        cell = inputs.new_zeros(batch, self.cell_size)
        recurrent_weight = self.recurrent_weight.t()  # (dim, 4 * cell)
        projection_weight = self.projection_weight.t()  # (cell, dim)
        outputs = []
        for from_input in from_inputs.unbind(0):
            i, j, f, o = torch.addmm(from_input, hidden, recurrent_weight).chunk(4, dim=-1)
            cell = torch.sigmoid(f + 1.0) * cell + torch.sigmoid(i) * torch.tanh(j)
            if self.cell_clip is not None:
                cell = cell.clamp(-self.cell_clip, self.cell_clip)
            hidden = (torch.sigmoid(o) * torch.tanh(cell)) @ projection_weight
            if self.projection_clip is not None:
                hidden = hidden.clamp(-self.projection_clip, self.projection_clip)
            outputs.append(hidden)
        return torch.stack(outputs, dim=1)
