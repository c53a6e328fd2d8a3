"""A run of an LSTM on a GPU by recordings, piece by piece."""

from functools import partial
from typing import Optional, Sequence

import torch

from elmo_scratch.kernels.lstm.kept_run import LstmGradients, LstmResult, LstmRun
from elmo_scratch.kernels.lstm.lstm_state import LstmState
from elmo_scratch.kernels.lstm.replay.grid import Grid, grid_of
from elmo_scratch.kernels.lstm.replay.recorded_steps import (
    NUM_STEPS,
    RecordedSteps,
    addresses_of,
    batch_tensors,
    step_tensors,
)
from elmo_scratch.kernels.lstm.steps_backward import lstm_reference_backward


def lstm_replayed(run: LstmRun, recorded: RecordedSteps) -> LstmResult:
    """
    Runs an LSTM by the recordings that `StepRecordings.of` found for it. Each step is computed for
    as many sentences as were recorded, also after they have ended: what comes of that is left out.
    """
    num_rows = recorded.num_rows
    grid = _grid(recorded, run)
    inputs, hidden, cell, bias, *mask = batch_tensors(run)
    hidden, cell, *mask = (_pad_rows(part, num_rows) for part in (hidden, cell, *mask))
    made = recorded.forward.room(grid.num_pieces)
    for own_inputs, *own in zip(grid.laid(inputs), *made):
        recorded.forward([own_inputs, hidden, cell, bias, *mask], own)
        hidden, cell = (part[-num_rows:] for part in own[:2])
    ended = zip(map(grid.picked_last, made[:2]), run.state)
    # Sentences without a position end with what they start from.
    state = LstmState(*(torch.cat([part, start[len(part) :]]) for part, start in ended))
    if recorded.backward is None:
        return LstmResult(grid.picked(made[0]), state)
    outputs, *histories = map(grid.picked, made)
    return LstmResult(outputs, state, histories, partial(_lstm_replayed_backward, recorded))


def _lstm_replayed_backward(
    recorded: RecordedSteps,
    run: LstmRun,
    kept: Sequence[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> LstmGradients:
    """With the recordings of the run, an `LstmBackward`."""
    moved = recorded.addresses[1:] != addresses_of(run)[1:]
    if state_gradients is not None or moved:
        # They would come in between the steps of a recording, or it would read what lies where
        # the weights were.
        return lstm_reference_backward(
            recorded.memory_cells, run, step_tensors(run, kept), output_gradients, state_gradients
        )
    assert recorded.backward is not None
    num_rows, before = recorded.num_rows, run.state.cell
    mask = [_pad_rows(part, num_rows) for part in batch_tensors(run)[4:]]
    d_hidden = before.new_zeros(num_rows, output_gradients.size(1))
    d_cell = before.new_zeros(num_rows, before.size(1))
    grid = _grid(recorded, run)
    laid = [grid.laid(part) for part in (*kept, output_gradients)]
    # Memory before the first step of each piece.
    cells = [_pad_rows(before, num_rows), *(part[-num_rows:] for part in laid[0][:-1])]
    made = recorded.backward.room(grid.num_pieces)
    for cell, *read, own in reversed([*zip(cells, *laid, zip(*made))]):
        recorded.backward([cell, *read, d_hidden, d_cell, *mask], own)
        *_, d_hidden, d_cell = own
    d_gates, d_projected = map(grid.picked, made[:2])
    d_state = LstmState(d_hidden[: len(before)], d_cell[: len(before)])
    return LstmGradients(d_gates, d_projected, kept[2].to(run.dtype), d_state)


def _grid(recorded: RecordedSteps, run: LstmRun) -> Grid:
    """How the run is laid over the recordings."""
    sizes, device = tuple(run.batch_sizes), run.inputs.device
    return grid_of(sizes, NUM_STEPS, recorded.num_rows, device, recorded.stream)


def _pad_rows(part: torch.Tensor, num_rows: int) -> torch.Tensor:
    """With rows of zeros."""
    if len(part) == num_rows:
        return part
    padded = part.new_zeros(num_rows, part.size(1))
    padded[: len(part)] = part
    return padded
