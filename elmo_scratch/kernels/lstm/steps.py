"""A run by PyTorch's products, one step after the other: what all other ways compute faster."""

from functools import partial
from typing import Iterator, List, NamedTuple, Optional

import torch

from elmo_scratch.kernels.linear import WeightProduct
from elmo_scratch.kernels.lstm.kept_run import LstmResult, LstmRun, join_ended
from elmo_scratch.kernels.lstm.lstm_state import LstmState
from elmo_scratch.kernels.lstm.memory_cells import memory_cells_for
from elmo_scratch.kernels.lstm.step_groups import step_groups
from elmo_scratch.kernels.lstm.steps_backward import lstm_reference_backward

ROWS_AT_ONCE = 256
"""The input's share of the gates is computed for about so many positions in one product: enough
for the full rate, and not more memory than the processor's caches hold."""

ROWS_ON_A_GPU = 4096
"""The same on a GPU, where a product of few rows takes no less time than one of many."""


class LstmProducts(NamedTuple):
    """The weights of an LSTM, ready for products, and its `gate_bias`."""

    inputs: WeightProduct
    recurrent: WeightProduct
    projection: Optional[WeightProduct]
    bias: torch.Tensor

    @classmethod
    def of(cls, run: LstmRun, is_only_run: bool = False) -> "LstmProducts":
        """For all runs with the weights of `run`, or for this one only."""
        weights, num_groups, num_steps = run.weights, None, None
        if is_only_run:
            num_groups = sum(1 for _ in step_groups(run.batch_sizes, ROWS_AT_ONCE))
            num_steps = len(run.batch_sizes)
        projection: Optional[WeightProduct] = None
        if len(weights.projection_weight) > 0:
            projection = WeightProduct(weights.projection_weight, run.dtype, num_steps)
        return cls(
            WeightProduct(weights.input_weight, run.dtype, num_groups),
            WeightProduct(weights.recurrent_weight, run.dtype, num_steps),
            projection,
            run.gate_bias(),
        )


def lstm_reference(run: LstmRun, products: LstmProducts, needs_grad: bool = False) -> LstmResult:
    """Runs an LSTM with `products` of its weights."""
    clips, mask = run.clips, run.recurrent_dropout_mask
    hidden, cell = run.state.hidden.to(run.dtype), run.state.cell
    memory_cells = memory_cells_for(run.dtype, cell, hidden, run.inputs, run.bias)
    outputs = hidden.new_empty(len(run.inputs), hidden.size(1))
    ended: List[LstmState] = []
    kept: List[torch.Tensor] = []
    start = 0
    for active, input_share in zip(run.batch_sizes, _input_shares(run, products)):
        if active < len(hidden):
            ended.append(LstmState(hidden[active:].to(cell.dtype), cell[active:]))
            hidden, cell = hidden[:active], cell[:active]
        gates = products.recurrent.added_to(input_share, hidden)
        cell_output = memory_cells.lstm_cell(gates, cell, clips.cell)
        output = cell_output.output
        if products.projection is not None:
            output = products.projection(output)
            if clips.projection is not None:
                output.clamp_(-clips.projection, clips.projection)
        if needs_grad:
            kept += [*cell_output, output]
        cell = cell_output.cell
        hidden = outputs[start : start + active]
        if mask is None:
            hidden.copy_(output)
        else:
            torch.mul(output, mask[:active], out=hidden)
        start += active
    ended.append(LstmState(hidden.to(cell.dtype), cell))
    result = LstmResult(outputs.to(cell.dtype), join_ended(ended))
    if not needs_grad:
        return result
    return result._replace(kept=kept, backward=partial(lstm_reference_backward, memory_cells))


def _input_shares(run: LstmRun, products: LstmProducts) -> Iterator[torch.Tensor]:
    """For each step the share of the inputs in its gates, of shape `(active, 4 * cell)`."""
    start = 0
    at_once = ROWS_AT_ONCE if run.inputs.device.type == "cpu" else ROWS_ON_A_GPU
    for group in step_groups(run.batch_sizes, at_once):
        end = start + sum(group)
        yield from products.inputs(run.inputs[start:end], products.bias).split(group)
        start = end
