"""The steps of a run by PyTorch's products, as they are kept for its backward pass."""

from typing import List, NamedTuple, Sequence

import torch

from elmo_scratch.kernels.lstm.kept_run import LstmRun
from elmo_scratch.kernels.lstm.memory_cells import CellOutput


class Step(NamedTuple):
    """
    What happened at one step, to `active` sentences.

    # Parameters

    previous_cell : `torch.Tensor`
        Shape `(active, cell)`: memory before the step.
    cell_output : `CellOutput`
        What became of it.
    output : `torch.Tensor`
        Shape `(active, dim)`: clipped, before dropout.
    """

    previous_cell: torch.Tensor
    cell_output: CellOutput
    output: torch.Tensor


def steps_of(run: LstmRun, kept: Sequence[torch.Tensor]) -> List[Step]:
    """
    # Parameters

    run : `LstmRun`
        The run.
    kept : `Sequence[torch.Tensor]`
        Each step's `CellOutput` and output, one step after the other.
    """
    steps: List[Step] = []
    previous = run.state.cell
    parts = [iter(kept)] * (len(CellOutput._fields) + 1)
    for *cell_output, output in zip(*parts):
        step = Step(previous[: len(output)], CellOutput(*cell_output), output)
        steps.append(step)
        previous = step.cell_output.cell
    return steps
