"""LSTMs of sizes that native code doesn't know, padded by zeros to the next that it knows."""

from typing import NamedTuple

import torch
from torch.nn.functional import pad

from elmo_scratch.kernels.lstm.kept_run import LstmGradients, LstmRun, LstmWeights
from elmo_scratch.kernels.lstm.lstm_state import LstmState
from elmo_scratch.kernels.panels import INPUTS_TOGETHER


class SizePadding(NamedTuple):
    """
    How many memory cells and outputs of zeros a run lacks. The weights of these are zeros, so that
    they stay at zero, and so do their gradients.
    """

    cells: int
    dim: int

    @classmethod
    def of(cls, run: LstmRun) -> "SizePadding":
        dim, num_cells = run.weights.projection_weight.shape
        return cls(-num_cells % INPUTS_TOGETHER, -dim % INPUTS_TOGETHER)

    def pad_sizes(self, run: LstmRun) -> LstmRun:
        """The run of an LSTM with so many more memory cells and outputs."""
        if not any(self):
            return run
        input_weight, recurrent_weight, projection_weight = run.weights
        weights = LstmWeights(
            self._pad_gates(input_weight, 0, 0),
            self._pad_gates(recurrent_weight, 0, self.dim),
            pad(projection_weight, (0, self.cells, 0, self.dim)),
        )
        return self.pad_batch(run._replace(weights=weights, bias=self._pad_gates(run.bias)))

    def pad_batch(self, run: LstmRun) -> LstmRun:
        """A run whose weights are padded already."""
        mask = run.recurrent_dropout_mask
        if mask is not None:
            mask = self.pad_outputs(mask)
        return run._replace(state=self.pad_state(run.state), recurrent_dropout_mask=mask)

    def pad_outputs(self, outputs: torch.Tensor) -> torch.Tensor:
        """From shape `(rows, dim)`."""
        return pad(outputs, (0, self.dim)) if self.dim else outputs

    def pad_state(self, state: LstmState) -> LstmState:
        cell = pad(state.cell, (0, self.cells)) if self.cells else state.cell
        return LstmState(self.pad_outputs(state.hidden), cell)

    def unpad_outputs(self, outputs: torch.Tensor) -> torch.Tensor:
        """To shape `(rows, dim)`."""
        return outputs[:, : outputs.size(1) - self.dim].contiguous()

    def unpad_state(self, state: LstmState) -> LstmState:
        return LstmState(self.unpad_outputs(state.hidden), self._unpad_cells(state.cell))

    def unpad_gradients(self, gradients: LstmGradients) -> LstmGradients:
        num_cells = gradients.cell_outputs.size(1) - self.cells
        return LstmGradients(
            gradients.gates.unflatten(1, (4, -1))[:, :, :num_cells].flatten(1),
            self.unpad_outputs(gradients.projected),
            self._unpad_cells(gradients.cell_outputs),
            self.unpad_state(gradients.state),
        )

    def _pad_gates(self, numbers: torch.Tensor, *missing: int) -> torch.Tensor:
        """Each gate of a tensor whose first dimension is `4 * cell`."""
        return pad(numbers.unflatten(0, (4, -1)), (*missing, 0, self.cells)).flatten(0, 1)

    def _unpad_cells(self, cells: torch.Tensor) -> torch.Tensor:
        return cells[:, : cells.size(1) - self.cells].contiguous()
