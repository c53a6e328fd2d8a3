"""The LSTM layers of one direction."""

from typing import List, Optional

import torch

from elmo_scratch.modules.projected_lstm import ProjectedLstm


class LstmStack(torch.nn.Module):
    """
    Layers of `ProjectedLstm`, with a residual connection from the second layer on: a layer's
    input is added to its output.

    # Parameters

    dim : `int`
        The size of inputs and outputs.
    num_layers : `int`
        How many layers.
    cell_size : `int`
        The number of memory cells of a layer.
    dropout : `float`, optional (default = `0.0`)
        Share of each layer's inputs that is dropped in training, in `[0, 1)`.
    cell_clip, projection_clip : `float`, optional (default = `3.0`)
        As in `ProjectedLstm`.

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
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
    ) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            ProjectedLstm(dim, dim, cell_size, cell_clip=cell_clip, projection_clip=projection_clip)
            for _ in range(num_layers)
        )
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, inputs: torch.Tensor) -> List[torch.Tensor]:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(batch, positions, dim)`, in the order of reading.

        # Returns

        `List[torch.Tensor]`
            The outputs of each layer, of shape `(batch, positions, dim)`.
        """
        outputs: List[torch.Tensor] = []
        for layer in self.layers:
            dropped = self.dropout(outputs[-1] if outputs else inputs)
            read = layer(dropped)
            outputs.append(read + dropped if outputs else read)
        return outputs
