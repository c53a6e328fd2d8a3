"""The steps of an LSTM, one after the other."""

from typing import Iterator, List, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.memory_cells import CellOutput, MemoryCells, memory_cells_for
from elmo_scratch.modules.lstms.step_groups import step_groups
from elmo_scratch.modules.products import WeightProduct

ROWS_AT_ONCE = 256
"""The input's share of the gates is computed for about so many positions in one product: enough
for the full rate, and not more memory than the processor's caches hold."""

ROWS_ON_A_GPU = 4096
"""The same there, where a product of few rows takes no less time than one of many."""


class LstmWeights(NamedTuple):
    """
    The matrices of an LSTM. The gates lie in the order i, j, f, o.

    # Parameters

    from_inputs : `torch.Tensor`
        Shape `(4 * cell, input_dim)`.
    from_hidden : `torch.Tensor`
        Shape `(4 * cell, dim)`.
    projection : `torch.Tensor`
        Shape `(dim, cell)`, or `(0, cell)` where outputs are not projected.
    """

    from_inputs: torch.Tensor
    from_hidden: torch.Tensor
    projection: torch.Tensor


class LstmProducts(NamedTuple):
    """
    The weights of an LSTM, ready for products.

    # Parameters

    from_inputs, from_hidden : `WeightProduct`
        To the gates, of `4 * cell` numbers, in the order i, j, f, o.
    projection : `Optional[WeightProduct]`
        From `cell` to `dim` numbers, if there is one.
    """

    from_inputs: WeightProduct
    from_hidden: WeightProduct
    projection: Optional[WeightProduct]

    @classmethod
    def of(
        cls, weights: LstmWeights, dtype: torch.dtype, batch_sizes: Optional[Sequence[int]] = None
    ) -> "LstmProducts":
        """
        # Parameters

        weights : `LstmWeights`
            The weights.
        dtype : `torch.dtype`
            The precision of products.
        batch_sizes : `Sequence[int]`, optional (default = `None`)
            Those of the only run that they will serve, if it is known to be the only one.
        """
        num_groups = (
            None if batch_sizes is None else sum(1 for _ in step_groups(batch_sizes, ROWS_AT_ONCE))
        )
        num_steps = None if batch_sizes is None else len(batch_sizes)
        return cls(
            WeightProduct(weights.from_inputs, dtype, num_groups),
            WeightProduct(weights.from_hidden, dtype, num_steps),
            WeightProduct(weights.projection, dtype, num_steps)
            if len(weights.projection)
            else None,
        )


class Clips(NamedTuple):
    """
    Bounds of what an LSTM may hold; `None` where there is none.

    # Parameters

    cell : `Optional[float]`
        Of memory cells.
    projection : `Optional[float]`
        Of projected outputs.
    """

    cell: Optional[float]
    projection: Optional[float]


class Step(NamedTuple):
    """
    What happened at one step, to `active` sentences.

    # Parameters

    previous_cell : `torch.Tensor`
        Shape `(active, cell)`: memory before the step.
    opened : `CellOutput`
        What became of it.
    output : `torch.Tensor`
        Shape `(active, dim)`: clipped, before dropout.
    """

    previous_cell: torch.Tensor
    opened: CellOutput
    output: torch.Tensor


class Run(NamedTuple):
    """
    What an LSTM has read.

    # Parameters

    outputs : `torch.Tensor`
        Shape `(read, dim)`.
    state : `LstmState`
        Of shape `(batch, ...)`: each sentence's own last state.
    steps : `List[Step]`
        Empty where they were not asked for.
    memory_cells : `MemoryCells`
        Those that were used.
    """

    outputs: torch.Tensor
    state: LstmState
    steps: List[Step]
    memory_cells: MemoryCells


def run_steps(
    products: LstmProducts,
    bias: torch.Tensor,
    inputs: torch.Tensor,
    batch_sizes: Sequence[int],
    state: LstmState,
    clips: Clips,
    output_scale: Optional[torch.Tensor] = None,
    keeps_steps: bool = False,
) -> Run:
    """
    Runs an LSTM over the positions of a `ReadingOrder`.

    # Parameters

    products : `LstmProducts`
        The weights.
    bias : `torch.Tensor`
        Shape `(4 * cell,)`, the forget gate's constant included.
    inputs : `torch.Tensor`
        Shape `(read, input_dim)`.
    batch_sizes : `Sequence[int]`
        How many sentences are read at each step; never grows.
    state : `LstmState`
        Of shape `(batch, ...)`, where each sentence starts.
    clips : `Clips`
        Bounds of cells and outputs.
    output_scale : `torch.Tensor`, optional (default = `None`)
        Shape `(batch, dim)`, multiplies the outputs of a sentence at every step (dropout).
    keeps_steps : `bool`, optional (default = `False`)
        Whether the steps are wanted.
    """
    dtype = products.from_hidden.dtype
    hidden, cell = state.hidden.to(dtype), state.cell
    memory_cells = memory_cells_for(dtype, cell, hidden, inputs, bias)
    outputs = hidden.new_empty(inputs.size(0), hidden.size(1))
    ended: List[LstmState] = []  # the last first, as shorter sentences come last
    steps: List[Step] = []
    start = 0
    for active, from_inputs in zip(batch_sizes, _input_shares(products, bias, inputs, batch_sizes)):
        if active < hidden.size(0):
            ended.append(LstmState(hidden[active:].to(cell.dtype), cell[active:]))
            hidden, cell = hidden[:active], cell[:active]
        gates = products.from_hidden.added_to(from_inputs, hidden)
        opened = memory_cells.lstm_cell(gates, cell, clips.cell)
        output = opened.output
        if products.projection is not None:
            output = products.projection(output)
            if clips.projection is not None:
                output.clamp_(-clips.projection, clips.projection)
        if keeps_steps:
            steps.append(Step(cell, opened, output))
        cell = opened.cell
        hidden = outputs[start : start + active]
        if output_scale is None:
            hidden.copy_(output)
        else:
            torch.mul(output, output_scale[:active], out=hidden)
        start += active
    ended.append(LstmState(hidden.to(cell.dtype), cell))
    final = LstmState(*(torch.cat(parts) for parts in zip(*reversed(ended))))
    return Run(outputs.to(cell.dtype), final, steps, memory_cells)


def _input_shares(
    products: LstmProducts, bias: torch.Tensor, inputs: torch.Tensor, batch_sizes: Sequence[int]
) -> Iterator[torch.Tensor]:
    """For each step the share of the inputs in its gates, of shape `(active, 4 * cell)`."""
    start = 0
    at_once = ROWS_AT_ONCE if inputs.device.type == "cpu" else ROWS_ON_A_GPU
    for group in step_groups(batch_sizes, at_once):
        end = start + sum(group)
        yield from products.from_inputs(inputs[start:end], bias).split(group)
        start = end
