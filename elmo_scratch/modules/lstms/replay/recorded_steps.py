"""Recorded steps of an LSTM."""

from functools import partial
from typing import List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.memory_cells import CellOutput, MemoryCells, memory_cells_for
from elmo_scratch.modules.lstms.replay.recording import Recording
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights, Step, run_steps
from elmo_scratch.modules.lstms.steps_backward import run_steps_backward
from elmo_scratch.modules.products import WeightProduct

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
        Takes inputs of shape `(steps * rows, input_dim)`, hidden and cell of shape `(rows, ...)`,
        the bias, and the scale of outputs if there is one. Gives outputs and memory after each
        step; with a backward pass also gates, what was opened, and outputs before dropout; each of
        shape `(steps * rows, ...)`.
    backward : `Optional[Recording]`
        Takes memory before the first step, then memory, gates, opened, and outputs of `forward`,
        gradients of the outputs and of the last state, and the scale. Gives the gradients of gates
        and projected outputs, of shape `(steps * rows, ...)`, and of the first state.
    """

    num_rows: int
    addresses: Tuple[Address, ...]
    memory_cells: MemoryCells
    stream: int
    forward: Recording
    backward: Optional[Recording]


def address_of(weight: torch.Tensor) -> Address:
    """
    # Parameters

    weight : `torch.Tensor`
        Of any shape.

    # Returns

    `Tuple[int, ...]`
        Its place in memory, shape and strides.
    """
    return (weight.data_ptr(), *weight.shape, *weight.stride())


class StepRecorder(NamedTuple):
    """
    Records steps. See `StepRecordings.of`.

    # Parameters

    weights, dtype, clips
        As there.
    num_rows : `int`
        For how many sentences.
    stream : `int`
        Of the GPU, on which they will be replayed.
    """

    weights: LstmWeights
    dtype: torch.dtype
    num_rows: int
    clips: Clips
    stream: int

    def addresses(self) -> Tuple[Address, ...]:
        """Of the weights."""
        return tuple(address_of(weight) for weight in self.weights)

    def recorded(self, tensors: Sequence[torch.Tensor], goes_back: bool) -> RecordedSteps:
        """
        # Parameters

        tensors : `Sequence[torch.Tensor]`
            Inputs, hidden, cell, bias, and the scale of outputs if there is one, with any number of
            rows.
        goes_back : `bool`
            As in `StepRecordings.of`.

        # Returns

        `RecordedSteps`
        """
        inputs, hidden, cell, bias, *scale = tensors
        like = [
            inputs.new_empty(NUM_STEPS * self.num_rows, inputs.size(1)),
            *self._states(hidden, cell),
            bias,
            *(part.new_empty(self.num_rows, part.size(1)) for part in scale),
        ]
        memory_cells = memory_cells_for(self.dtype, cell)
        forward = Recording(partial(self._forward, goes_back), like)
        recorded = RecordedSteps(
            self.num_rows, self.addresses(), memory_cells, self.stream, forward, None
        )
        if not goes_back:
            return recorded
        outputs, after, *kept = (part[0] for part in forward.room(1))
        _, hidden, cell, _, *scale = like
        given = [cell, after, *kept, outputs, hidden, cell, *scale]
        return recorded._replace(backward=Recording(self._backward, given))

    def _states(self, *parts: torch.Tensor) -> List[torch.Tensor]:
        """Of the recorded number of rows."""
        return [part.new_empty(self.num_rows, part.size(1)) for part in parts]

    def _forward(self, goes_back: bool, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        inputs, hidden, cell, bias, *scale = given
        done = run_steps(
            LstmProducts.of(self.weights, self.dtype),
            bias,
            inputs,
            [self.num_rows] * NUM_STEPS,
            LstmState(hidden, cell),
            self.clips,
            scale[0] if scale else None,
            keeps_steps=True,
        )
        kept = [
            (step.opened.cell, step.opened.gates, step.opened.output, step.output)
            for step in done.steps
        ]
        # All but memory is needed by the backward pass alone.
        needed = list(zip(*kept))[: None if goes_back else 1]
        return [done.outputs, *(torch.cat(parts) for parts in needed)]

    def _backward(self, given: Sequence[torch.Tensor]) -> List[torch.Tensor]:
        before, *histories, d_outputs, d_hidden, d_cell = given[:8]
        after, gates, opened, projected = (part.split(self.num_rows) for part in histories)
        steps = [
            Step(previous, CellOutput(cell, own_opened, own_gates), output)
            for previous, cell, own_gates, own_opened, output in zip(
                (before, *after), after, gates, opened, projected
            )
        ]
        scale = given[8] if len(given) > 8 else None
        to_hidden = WeightProduct(self.weights.from_hidden.t(), self.dtype)
        to_cell = None
        if len(self.weights.projection) > 0:
            to_cell = WeightProduct(self.weights.projection.t(), self.dtype)
        back = run_steps_backward(
            to_hidden,
            to_cell,
            memory_cells_for(self.dtype, before),
            steps,
            self.clips,
            scale,
            d_outputs,
            LstmState(d_hidden, d_cell),
        )
        return [back.gates, back.projected, *back.state]
