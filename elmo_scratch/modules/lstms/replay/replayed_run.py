"""All steps of an LSTM on a GPU by recordings, piece by piece."""

from functools import partial
from typing import List, Optional, Sequence

import torch

from elmo_scratch.modules.lstms.kept_run import KeptRun, RunGradients
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.memory_cells import CellOutput
from elmo_scratch.modules.lstms.replay.grid import Grid, grid_of
from elmo_scratch.modules.lstms.replay.recorded_steps import NUM_STEPS, RecordedSteps, address_of
from elmo_scratch.modules.lstms.steps import Clips, LstmWeights, Step
from elmo_scratch.modules.lstms.stepwise_run import run_stepwise_backward, tensors_of


def run_replayed(
    recorded: RecordedSteps,
    weights: LstmWeights,
    dtype: torch.dtype,
    bias: torch.Tensor,
    inputs: torch.Tensor,
    batch_sizes: Sequence[int],
    state: LstmState,
    clips: Clips,
    output_scale: Optional[torch.Tensor],
) -> KeptRun:
    """
    Runs an LSTM over the positions of a `ReadingOrder`, as `run_steps`, each step for as many
    sentences as were recorded, also after they have ended: what comes of that is left out.

    # Parameters

    recorded : `RecordedSteps`
        Made for all that follows, by `StepRecordings.of`.
    weights, dtype, bias, inputs, batch_sizes, state, clips, output_scale
        As there.
    """
    num_rows = recorded.num_rows
    grid = _grid(recorded, batch_sizes, inputs.device)
    hidden, cell = (_filled_up(part, num_rows) for part in state)
    rest = [bias, *([] if output_scale is None else [_filled_up(output_scale, num_rows)])]
    made = recorded.forward.room(grid.num_pieces)
    for own_inputs, *own in zip(grid.laid(inputs), *made):
        recorded.forward([own_inputs, hidden, cell, *rest], own)
        hidden, cell = (part[-num_rows:] for part in own[:2])
    ended = (grid.picked_last(part) for part in made[:2])
    # Sentences without a position end with what they start from.
    final = LstmState(*(torch.cat([part, start[len(part) :]]) for part, start in zip(ended, state)))
    kept_parts = made if recorded.backward is not None else made[:1]
    outputs, *histories = map(grid.picked, kept_parts)
    kept = [weights.from_hidden, weights.projection, state.cell, *histories]
    return KeptRun(outputs, final, kept, partial(_run_replayed_backward, dtype, recorded))


def _run_replayed_backward(
    dtype: torch.dtype,
    recorded: RecordedSteps,
    kept: Sequence[torch.Tensor],
    batch_sizes: Sequence[int],
    clips: Clips,
    output_scale: Optional[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> RunGradients:
    """With the precision and the recordings of the run, a `RunBackward`."""
    from_hidden, projection, before, *histories = kept
    after, gates, opened, projected = histories
    weights = (from_hidden, projection)
    if state_gradients is not None or recorded.addresses[1:] != tuple(map(address_of, weights)):
        # They would come in between the steps of a recording, or it would read what lies where
        # the weights were.
        steps = _steps_of(batch_sizes, before, *histories)
        return run_stepwise_backward(
            dtype,
            recorded.memory_cells,
            before.shape,
            [*weights, *(tensor for step in steps for tensor in tensors_of(step))],
            batch_sizes,
            clips,
            output_scale,
            output_gradients,
            state_gradients,
        )
    assert recorded.backward is not None
    num_rows = recorded.num_rows
    scale = [] if output_scale is None else [_filled_up(output_scale, num_rows)]
    d_hidden = before.new_zeros(num_rows, output_gradients.size(1))
    d_cell = before.new_zeros(num_rows, before.size(1))
    grid = _grid(recorded, batch_sizes, before.device)
    laid = [grid.laid(part) for part in (*histories, output_gradients)]
    # Memory before the first step of each piece.
    cells = [_filled_up(before, num_rows), *(part[-num_rows:] for part in laid[0][:-1])]
    made = recorded.backward.room(grid.num_pieces)
    for cell, *read, own in reversed([*zip(cells, *laid, zip(*made))]):
        recorded.backward([cell, *read, d_hidden, d_cell, *scale], own)
        *_, d_hidden, d_cell = own
    d_gates, d_projected = map(grid.picked, made[:2])
    d_state = LstmState(d_hidden[: len(before)], d_cell[: len(before)])
    return RunGradients(d_gates, d_projected, opened.to(dtype), d_state)


def _grid(recorded: RecordedSteps, batch_sizes: Sequence[int], device: torch.device) -> Grid:
    """That of the recordings."""
    return grid_of(tuple(batch_sizes), NUM_STEPS, recorded.num_rows, device, recorded.stream)


def _steps_of(
    batch_sizes: Sequence[int],
    before: torch.Tensor,
    after: torch.Tensor,
    gates: torch.Tensor,
    opened: torch.Tensor,
    projected: torch.Tensor,
) -> List[Step]:
    """The steps of histories of shape `(read, ...)`."""
    cells = [before]
    steps: List[Step] = []
    histories = (part.split(list(batch_sizes)) for part in (after, gates, opened, projected))
    for own_after, own_gates, own_opened, output in zip(*histories):
        previous = cells[-1][: len(output)]
        steps.append(Step(previous, CellOutput(own_after, own_opened, own_gates), output))
        cells.append(own_after)
    return steps


def _filled_up(part: torch.Tensor, num_rows: int) -> torch.Tensor:
    """With rows of zeros."""
    if len(part) == num_rows:
        return part
    filled = part.new_zeros(num_rows, part.size(1))
    filled[: len(part)] = part
    return filled
