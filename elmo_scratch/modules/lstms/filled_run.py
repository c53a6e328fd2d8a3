"""All steps of an LSTM of any size by compiled code, which knows some sizes only."""

from functools import partial
from typing import Optional, Sequence

import torch

from elmo_scratch.modules.lstms.compiled_run import run_compiled
from elmo_scratch.modules.lstms.filling import Filling
from elmo_scratch.modules.lstms.kept_run import KeptRun, RunBackward, RunGradients
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.steps import Clips, LstmWeights


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
    Runs an LSTM as `run_compiled`.

    # Parameters

    weights, dtype, bias, inputs, batch_sizes, state, clips, output_scale
        As in `run_compiled`, of any size.
    """
    filling = Filling.of(weights.projection)
    done = run_compiled(
        filling.weights(weights),
        dtype,
        filling.bias(bias),
        inputs,
        batch_sizes,
        filling.state(state),
        clips,
        filling.scale(output_scale),
    )
    if not any(filling):
        return done
    return KeptRun(
        filling.own_outputs(done.outputs),
        filling.own_state(done.state),
        done.kept,
        partial(_run_filled_backward, done.backward, filling),
    )


def _run_filled_backward(
    run_backward: RunBackward,
    filling: Filling,
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
        filling.scale(output_scale),
        filling.outputs(output_gradients),
        None if state_gradients is None else filling.state(state_gradients),
    )
    return RunGradients(
        filling.own_gates(back.gates),
        filling.own_outputs(back.projected),
        filling.own_cells(back.opened),
        filling.own_state(back.state),
    )
