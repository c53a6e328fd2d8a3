"""Runs by native code of which nothing is kept for a backward pass."""

from typing import List, NamedTuple

import torch

from elmo_scratch.kernels.linear import WeightProduct
from elmo_scratch.kernels.lstm.compiled_run import Panels, can_run_native, run_panels
from elmo_scratch.kernels.lstm.filling import SizePadding
from elmo_scratch.kernels.lstm.kept_run import LstmResult, LstmRun, join_ended
from elmo_scratch.kernels.lstm.lstm_state import LstmState
from elmo_scratch.kernels.lstm.step_groups import step_groups

GATES_AT_ONCE = 2**22
"""So many gates are computed before it goes on to the next steps: 16 MiB in float32, in which there
are enough positions for the full rate."""


class NativeWeights(NamedTuple):
    """
    The weights of an LSTM, padded and ready for `lstm_native_inference`, which computes the gates
    of `at_once` positions together.
    """

    inputs: WeightProduct
    panels: Panels
    padding: SizePadding
    at_once: int

    @classmethod
    def of(cls, run: LstmRun) -> "NativeWeights":
        padding = SizePadding.of(run)
        padded = padding.pad_sizes(run)
        return cls(
            WeightProduct(padded.weights.input_weight, run.dtype),
            Panels.of(padded),
            padding,
            GATES_AT_ONCE // len(padded.bias),
        )


def can_infer_native(run: LstmRun) -> bool:
    """Whether there is native code for a run of which nothing is kept."""
    active = run.batch_sizes[0] if run.batch_sizes else 0
    return can_run_native(run._replace(state=LstmState(*(part[:active] for part in run.state))))


def lstm_native_inference(run: LstmRun, weights: NativeWeights) -> LstmResult:
    """
    Runs an LSTM with prepared `weights`. The result for a sentence doesn't depend on others, to the
    bit, where that of a `WeightProduct` doesn't.
    """
    padding = weights.padding
    going = padding.pad_batch(run)
    outputs: List[torch.Tensor] = []
    ended: List[LstmState] = []
    start = 0
    for group in step_groups(run.batch_sizes, weights.at_once):
        active, end = group[0], start + sum(group)
        ended.append(LstmState(*(part[active:] for part in going.state)))
        state = LstmState(*(part[:active] for part in going.state))
        gates = weights.inputs(run.inputs[start:end])
        done = run_panels(going._replace(batch_sizes=group, state=state), weights.panels, gates)
        outputs.append(padding.unpad_outputs(done.outputs))
        going, start = going._replace(state=done.state), end
    ended.append(going.state)
    return LstmResult(torch.cat(outputs), padding.unpad_state(join_ended(ended)))
