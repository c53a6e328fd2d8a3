"""All steps of an LSTM of any size by compiled code, which knows some sizes only."""

from functools import partial
from typing import NamedTuple, Optional, Sequence

import torch
from torch.nn.functional import pad

from elmo_scratch.modules.lstms.compiled_run import SIZES_TOGETHER, run_compiled
from elmo_scratch.modules.lstms.kept_run import KeptRun, RunBackward, RunGradients
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.steps import Clips, LstmWeights

GATES = 4


class _Missing(NamedTuple):
    """How many outputs and memory cells are filled in."""

    dim: int
    cells: int


def run_filled(
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
    Runs an LSTM as `run_compiled`, filled up to the next size that it knows by memory cells and
    outputs whose weights are zeros. They stay at zero, and so do their gradients.

    # Parameters

    weights, dtype, bias, inputs, batch_sizes, state, clips, output_scale
        As in `run_compiled`, of any size.
    """
    dim, num_cells = weights.projection.shape
    missing = _Missing(-dim % SIZES_TOGETHER, -num_cells % SIZES_TOGETHER)
    if not any(missing):
        return run_compiled(weights, dtype, bias, inputs, batch_sizes, state, clips, output_scale)
    filled = LstmWeights(
        _of_gates(weights.from_inputs, 0, 0, 0, missing.cells),
        _of_gates(weights.from_hidden, 0, missing.dim, 0, missing.cells),
        pad(weights.projection, (0, missing.cells, 0, missing.dim)),
    )
    done = run_compiled(
        filled,
        dtype,
        _of_gates(bias, 0, missing.cells),
        inputs,
        batch_sizes,
        _of_state(state, missing),
        clips,
        _of_outputs(output_scale, missing),
    )
    return KeptRun(
        done.outputs[:, :dim].contiguous(),
        LstmState(done.state.hidden[:, :dim], done.state.cell[:, :num_cells]),
        done.kept,
        partial(_run_filled_backward, done.backward, missing),
    )


def _run_filled_backward(
    run_backward: RunBackward,
    missing: _Missing,
    kept: Sequence[torch.Tensor],
    batch_sizes: Sequence[int],
    clips: Clips,
    output_scale: Optional[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> RunGradients:
    """With the backward pass of the filled run and what was filled in, a `RunBackward`."""
    back = run_backward(
        kept,
        batch_sizes,
        clips,
        _of_outputs(output_scale, missing),
        pad(output_gradients, (0, missing.dim)),
        None if state_gradients is None else _of_state(state_gradients, missing),
    )
    dim, num_cells = output_gradients.size(1), back.opened.size(1) - missing.cells
    return RunGradients(
        back.gates.unflatten(1, (GATES, -1))[:, :, :num_cells].flatten(1),
        back.projected[:, :dim].contiguous(),
        back.opened[:, :num_cells].contiguous(),
        LstmState(back.state.hidden[:, :dim], back.state.cell[:, :num_cells]),
    )


def _of_gates(numbers: torch.Tensor, *missing: int) -> torch.Tensor:
    """Of each gate, whose numbers follow each other in the first dimension."""
    return pad(numbers.unflatten(0, (GATES, -1)), missing).flatten(0, 1)


def _of_state(state: LstmState, missing: _Missing) -> LstmState:
    return LstmState(pad(state.hidden, (0, missing.dim)), pad(state.cell, (0, missing.cells)))


def _of_outputs(scale: Optional[torch.Tensor], missing: _Missing) -> Optional[torch.Tensor]:
    return None if scale is None else pad(scale, (0, missing.dim))
