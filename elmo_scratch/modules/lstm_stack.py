"""The LSTM layers of one direction."""

from typing import List, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.kernels.dropout import Dropout
from elmo_scratch.kernels.lstm.run import LstmState
from elmo_scratch.modules.projected_lstm import ProjectedLstm


class StackOutput(NamedTuple):
    """
    What the layers of one direction make of a batch.

    # Parameters

    layers : `List[torch.Tensor]`
        For each layer its outputs, of shape `(packed, dim)`.
    state : `LstmState`
        Of shape `(layers, batch, ...)`: each sentence's last states.
    """

    layers: List[torch.Tensor]
    state: LstmState


class LstmStack(torch.nn.Module):
    """
    Layers of `ProjectedLstm`.

    # Parameters

    dim : `int`
        The size of inputs and outputs.
    num_layers : `int`
        How many layers.
    cell_size : `int`
        The number of memory cells of a layer.
    dropout : `float`, optional (default = `0.0`)
        Share of each layer's inputs that is dropped in training, in `[0, 1)`.
    recurrent_dropout : `float`, optional (default = `0.0`)
        As in `ProjectedLstm`.
    cell_clip, projection_clip : `float`, optional (default = `3.0`)
        As in `ProjectedLstm`.
    use_skip_connections : `bool`, optional (default = `True`)
        From the second layer on, add a layer's input to its output.

    # Source

    Peters et al. 2018, section 3.1; Józefowicz et al. 2016.
    """

    def __init__(
        self,
        dim: int,
        num_layers: int,
        cell_size: int,
        *,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
        use_skip_connections: bool = True,
    ) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            ProjectedLstm(
                dim,
                dim,
                cell_size,
                cell_clip=cell_clip,
                projection_clip=projection_clip,
                recurrent_dropout=recurrent_dropout,
            )
            for _ in range(num_layers)
        )
        self.cell_size = cell_size
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.dropout = Dropout(dropout)
        self.use_skip_connections = use_skip_connections

    def forward(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], state: Optional[LstmState] = None
    ) -> StackOutput:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(packed, dim)`, in the order of a `ReadingOrder`.
        batch_sizes : `Sequence[int]`
            How many sentences are read at each step.
        state : `LstmState`, optional (default = `None`)
            Of shape `(layers, batch, ...)`: where each sentence, in the order of reading, starts.
            `None` starts from zeros.

        # Returns

        `StackOutput`
            The outputs and the last states of each layer.
        """
        outputs: List[torch.Tensor] = []
        states: List[LstmState] = []
        for number, layer in enumerate(self.layers):
            dropped = self.dropout(outputs[-1] if outputs else inputs)
            read = layer(dropped, batch_sizes, None if state is None else state.layer(number))
            is_skipped = self.use_skip_connections and number > 0
            outputs.append(read.outputs + dropped if is_skipped else read.outputs)
            states.append(read.state)
        return StackOutput(outputs, LstmState.stack(states))
