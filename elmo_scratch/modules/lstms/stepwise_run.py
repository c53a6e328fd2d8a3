"""All steps of an LSTM by PyTorch's products, one step after the other."""

from functools import partial
from typing import List, Optional, Sequence

import torch

from elmo_scratch.modules.lstms.kept_run import KeptRun, RunGradients, gradients_or_zeros
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.memory_cells import CellOutput, MemoryCells
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights, Step, run_steps
from elmo_scratch.modules.lstms.steps_backward import run_steps_backward
from elmo_scratch.modules.products import WeightProduct


def run_stepwise(
    weights: LstmWeights,
    dtype: torch.dtype,
    products: LstmProducts,
    bias: torch.Tensor,
    inputs: torch.Tensor,
    batch_sizes: Sequence[int],
    state: LstmState,
    clips: Clips,
    output_scale: Optional[torch.Tensor],
) -> KeptRun:
    """
    Runs an LSTM by `run_steps`.

    # Parameters

    weights : `LstmWeights`
        The weights.
    dtype : `torch.dtype`
        The precision of products.
    products : `LstmProducts`
        The weights, prepared.
    bias, inputs, batch_sizes, state, clips, output_scale
        As in `run_steps`.
    """
    done = run_steps(
        products, bias, inputs, batch_sizes, state, clips, output_scale, keeps_steps=True
    )
    kept = [weights.from_hidden, weights.projection]
    kept += [tensor for step in done.steps for tensor in tensors_of(step)]
    backward = partial(run_stepwise_backward, dtype, done.memory_cells, tuple(state.cell.shape))
    return KeptRun(done.outputs, done.state, kept, backward)


def run_stepwise_backward(
    dtype: torch.dtype,
    memory_cells: MemoryCells,
    cells: Sequence[int],
    kept: Sequence[torch.Tensor],
    batch_sizes: Sequence[int],
    clips: Clips,
    output_scale: Optional[torch.Tensor],
    output_gradients: torch.Tensor,
    state_gradients: Optional[LstmState],
) -> RunGradients:
    """
    With its first three arguments, a `RunBackward`.

    # Parameters

    dtype : `torch.dtype`
        The precision of products.
    memory_cells : `MemoryCells`
        Those of the run.
    cells : `Sequence[int]`
        The shape of memory, `(batch, cell)`.
    kept : `Sequence[torch.Tensor]`
        The recurrent weights, the projection, and `tensors_of` each step.
    batch_sizes, clips, output_scale, output_gradients, state_gradients
        As in `RunBackward`.
    """
    recurrent_weight, projection_weight, *tensors = kept
    num_steps = len(batch_sizes)
    return run_steps_backward(
        WeightProduct(recurrent_weight.t(), dtype, num_steps),
        WeightProduct(projection_weight.t(), dtype, num_steps) if len(projection_weight) else None,
        memory_cells,
        _steps_of(tensors),
        clips,
        output_scale,
        output_gradients,
        gradients_or_zeros(state_gradients, output_gradients, cells),
    )


def tensors_of(step: Step) -> List[torch.Tensor]:
    """
    # Parameters

    step : `Step`
        Any.

    # Returns

    `List[torch.Tensor]`
        All of it.
    """
    return [step.previous_cell, *step.opened, step.output]


def _steps_of(tensors: Sequence[torch.Tensor]) -> List[Step]:
    """The steps whose tensors these are, one step after the other."""
    parts = [iter(tensors)] * (2 + len(CellOutput._fields))
    return [Step(before, CellOutput(*opened), output) for before, *opened, output in zip(*parts)]
