"""All steps of an LSTM of any size by native code, which knows some sizes only."""

from functools import partial
from typing import Optional, Sequence

import torch

from elmo_scratch.kernels.lstm.compiled_run import lstm_native_aligned
from elmo_scratch.kernels.lstm.filling import SizePadding
from elmo_scratch.kernels.lstm.kept_run import LstmBackward, LstmGradients, LstmResult, LstmRun
from elmo_scratch.kernels.lstm.lstm_state import LstmState


def lstm_native(run: LstmRun) -> LstmResult:
    """Runs an LSTM that `can_run_native` by native code, and keeps what a backward pass needs."""
    padding = SizePadding.of(run)
    padded = lstm_native_aligned(padding.pad_sizes(run))
    if not any(padding):
        return padded
    assert padded.backward is not None
    return LstmResult(
        padding.unpad_outputs(padded.outputs),
        padding.unpad_state(padded.state),
        padded.kept,
        partial(_lstm_native_backward, padding, padded.backward),
    )


def _lstm_native_backward(
    padding: SizePadding,
    padded_backward: LstmBackward,
    run: LstmRun,
    kept: Sequence[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> LstmGradients:
    """With its first two arguments, an `LstmBackward`."""
    if state_gradients is not None:
        state_gradients = padding.pad_state(state_gradients)
    gradients = padded_backward(
        padding.pad_sizes(run), kept, padding.pad_outputs(output_gradients), state_gradients
    )
    return padding.unpad_gradients(gradients)
