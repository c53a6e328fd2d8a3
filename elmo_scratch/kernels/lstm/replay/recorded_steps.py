"""Recorded steps of an LSTM."""

from functools import partial
from typing import List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.kernels.lstm.kept_run import LstmRun
from elmo_scratch.kernels.lstm.lstm_state import LstmState
from elmo_scratch.kernels.lstm.memory_cells import CellOutput, MemoryCells, memory_cells_for
from elmo_scratch.kernels.lstm.replay.recording import Recording
from elmo_scratch.kernels.lstm.steps import LstmProducts, lstm_reference
from elmo_scratch.kernels.lstm.steps_backward import lstm_reference_backward

NUM_STEPS = 10
"""How many steps a recording has: half a window of the original's recipe."""

Address = Tuple[int, ...]
"""Where a tensor lies, and how."""


class RecordedSteps(NamedTuple):
    """
    Some steps of an LSTM with a fixed number of sentences.

    # Parameters

    num_rows : `int`
        How many sentences.
    addresses : `Tuple[Address, ...]`
        Of the weights.
    memory_cells : `MemoryCells`
        Those that were recorded.
    stream : `int`
        Of the GPU, on which it is replayed.
    forward : `Recording`
        Takes `batch_tensors` of a run of so many steps and sentences. Gives outputs and memory
        after each step; with a backward pass also gates, memory cells' outputs, and outputs before
        dropout; each of shape `(steps * rows, ...)`.
    backward : `Optional[Recording]`
        Takes memory before the first step, then all that `forward` gives, the outputs last and as
        gradients, the gradients of the last state, and the dropout mask if there is one. Gives the
        gradients of gates and projected outputs, of shape `(steps * rows, ...)`, and of the first
        state.
    """

    num_rows: int
    addresses: Tuple[Address, ...]
    memory_cells: MemoryCells
    stream: int
    forward: Recording
    backward: Optional[Recording]


def addresses_of(run: LstmRun) -> Tuple[Address, ...]:
    """Each matrix's place in memory, shape and strides."""
    return tuple((weight.data_ptr(), *weight.shape, *weight.stride()) for weight in run.weights)


def batch_tensors(run: LstmRun) -> List[torch.Tensor]:
    """What is copied for each replay: all tensors but the matrices, which are read in place."""
    mask = run.recurrent_dropout_mask
    return [run.inputs, *run.state, run.bias, *([] if mask is None else [mask])]


class StepRecorder(NamedTuple):
    """
    Records the steps of `run`, which has `NUM_STEPS` of them, to be replayed on one `stream` of the
    GPU. Beside the weights, only the shapes and types of the run's tensors matter.
    """

    run: LstmRun
    stream: int

    @classmethod
    def like(cls, run: LstmRun, num_rows: int, stream: int) -> "StepRecorder":
        """For runs like `run`, of `num_rows` sentences."""

        def room(part: torch.Tensor, rows: int) -> torch.Tensor:
            return part.new_empty(1, 1).expand(rows, part.size(1))

        mask = run.recurrent_dropout_mask
        recorded = run._replace(
            inputs=room(run.inputs, NUM_STEPS * num_rows),
            batch_sizes=[num_rows] * NUM_STEPS,
            state=LstmState(*(room(part, num_rows) for part in run.state)),
            recurrent_dropout_mask=None if mask is None else room(mask, num_rows),
        )
        return cls(recorded, stream)

    def recorded(self, needs_grad: bool) -> RecordedSteps:
        """Records them, the backward pass only if it is needed."""
        num_rows, (hidden, cell) = self.run.batch_sizes[0], self.run.state
        memory_cells = memory_cells_for(self.run.dtype, cell)
        forward = Recording(partial(self._forward, needs_grad), batch_tensors(self.run))
        recorded = RecordedSteps(
            num_rows, addresses_of(self.run), memory_cells, self.stream, forward, None
        )
        if not needs_grad:
            return recorded
        outputs, after, *kept = (part[0] for part in forward.room(1))
        mask = batch_tensors(self.run)[4:]
        given = [cell, after, *kept, outputs, hidden, cell, *mask]
        return recorded._replace(backward=Recording(self._backward, given))

    def _forward(self, needs_grad: bool, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        inputs, hidden, cell, bias, *mask = given
        run = self.run._replace(
            inputs=inputs,
            state=LstmState(hidden, cell),
            bias=bias,
            recurrent_dropout_mask=mask[0] if mask else None,
        )
        result = lstm_reference(run, LstmProducts.of(run), needs_grad=True)
        cells, cell_outputs, gates, projected = (result.kept[part::4] for part in range(4))
        # All but memory is needed by the backward pass alone.
        histories = [cells, gates, cell_outputs, projected] if needs_grad else [cells]
        return [result.outputs, *(torch.cat(list(parts)) for parts in histories)]

    def _backward(self, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        before, *histories, d_outputs, d_hidden, d_cell = given[:8]
        run = self.run._replace(
            state=LstmState(d_hidden, before),
            recurrent_dropout_mask=given[8] if len(given) > 8 else None,
        )
        memory_cells = memory_cells_for(self.run.dtype, before)
        kept = step_tensors(run, histories)
        back = lstm_reference_backward(
            memory_cells, run, kept, d_outputs, LstmState(d_hidden, d_cell)
        )
        return [back.gates, back.projected, *back.state]


def step_tensors(run: LstmRun, histories: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """
    What `lstm_reference` keeps of a run, from memory after each step, gates, memory cells' outputs
    and outputs before dropout, each of shape `(packed, ...)`.
    """
    steps = zip(*(part.split(list(run.batch_sizes)) for part in histories))
    return [
        part
        for cell, gates, cell_output, output in steps
        for part in (*CellOutput(cell, cell_output, gates), output)
    ]
