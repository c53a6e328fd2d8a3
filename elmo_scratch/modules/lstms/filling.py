"""LSTMs of sizes that compiled code doesn't know, filled up by zeros to the next that it knows."""

from typing import NamedTuple, Optional

import torch
from torch.nn.functional import pad

from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.steps import LstmWeights
from elmo_scratch.modules.products.panels import INPUTS_TOGETHER

GATES = 4


class Filling(NamedTuple):
    """
    Memory cells and outputs whose weights are zeros. They stay at zero, and so do their gradients.

    # Parameters

    cells, dim : `int`
        How many memory cells and outputs are filled in.
    """

    cells: int
    dim: int

    @classmethod
    def of(cls, projection: torch.Tensor) -> "Filling":
        """
        # Parameters

        projection : `torch.Tensor`
            Shape `(dim, cell)`.
        """
        dim, num_cells = projection.shape
        return cls(-num_cells % INPUTS_TOGETHER, -dim % INPUTS_TOGETHER)

    def weights(self, weights: LstmWeights) -> LstmWeights:
        """Filled up."""
        from_inputs, from_hidden, projection = weights
        if not any(self):
            return weights
        return LstmWeights(
            self._gates(from_inputs, 0, 0),
            self._gates(from_hidden, 0, self.dim),
            pad(projection, (0, self.cells, 0, self.dim)),
        )

    def bias(self, bias: torch.Tensor) -> torch.Tensor:
        """Filled up."""
        return self._gates(bias) if self.cells else bias

    def outputs(self, outputs: torch.Tensor) -> torch.Tensor:
        """Filled up: shape `(any, dim)`."""
        return pad(outputs, (0, self.dim)) if self.dim else outputs

    def scale(self, scale: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
        """What outputs are multiplied with, if they are, filled up."""
        return None if scale is None else self.outputs(scale)

    def state(self, state: LstmState) -> LstmState:
        """Filled up."""
        hidden, cell = state
        return LstmState(self.outputs(hidden), pad(cell, (0, self.cells)) if self.cells else cell)

    def own_cells(self, cells: torch.Tensor) -> torch.Tensor:
        """The LSTM's own, of shape `(any, cell)`."""
        return cells[:, : cells.size(1) - self.cells].contiguous()

    def own_outputs(self, outputs: torch.Tensor) -> torch.Tensor:
        """The LSTM's own, of shape `(any, dim)`."""
        return outputs[:, : outputs.size(1) - self.dim].contiguous()

    def own_gates(self, gates: torch.Tensor) -> torch.Tensor:
        """The LSTM's own, of shape `(any, 4 * cell)`."""
        num_cells = gates.size(1) // GATES - self.cells
        return gates.unflatten(1, (GATES, -1))[:, :, :num_cells].flatten(1)

    def own_state(self, state: LstmState) -> LstmState:
        """The LSTM's own."""
        return LstmState(self.own_outputs(state.hidden), self.own_cells(state.cell))

    def _gates(self, numbers: torch.Tensor, *missing: int) -> torch.Tensor:
        """Of each gate, whose numbers follow each other in the first dimension."""
        return pad(numbers.unflatten(0, (GATES, -1)), (*missing, 0, self.cells)).flatten(0, 1)
