"""Reading by compiled code, of which nothing is kept for a backward pass."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.modules.lstms.compiled_run import Panels, can_run_compiled, run_forward
from elmo_scratch.modules.lstms.filling import Filling
from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.step_groups import step_groups
from elmo_scratch.modules.lstms.steps import Clips, LstmWeights
from elmo_scratch.modules.products import WeightProduct

GATES_AT_ONCE = 2**22
"""So many gates are computed before it goes on to the next steps: 16 MiB in float32, in which there
are enough positions for the full rate."""


class CompiledProducts(NamedTuple):
    """
    The weights of an LSTM, ready for `read_compiled`.

    # Parameters

    from_inputs : `WeightProduct`
        To the gates, of `4 * cell` numbers, in the order i, j, f, o.
    panels : `Panels`
        All other weights.
    filling : `Filling`
        What both are filled up with.
    at_once : `int`
        For how many positions gates are computed together.
    """

    from_inputs: WeightProduct
    panels: Panels
    filling: Filling
    at_once: int

    @classmethod
    def of(cls, weights: LstmWeights, dtype: torch.dtype) -> "CompiledProducts":
        """
        # Parameters

        weights : `LstmWeights`
            The weights.
        dtype : `torch.dtype`
            The precision of products.
        """
        filling = Filling.of(weights.projection)
        filled = filling.weights(weights)
        return cls(
            WeightProduct(filled.from_inputs, dtype),
            Panels.of(filled, dtype),
            filling,
            GATES_AT_ONCE // len(filled.from_inputs),
        )


def can_read_compiled(
    weights: LstmWeights,
    dtype: torch.dtype,
    bias: torch.Tensor,
    inputs: torch.Tensor,
    batch_sizes: Sequence[int],
    state: LstmState,
) -> bool:
    """
    # Parameters

    weights, dtype, bias, inputs, batch_sizes, state
        As in `run_steps`.

    # Returns

    `bool`
        Whether there is compiled code for all that.
    """
    active = batch_sizes[0] if batch_sizes else 0
    beginning = LstmState(*(part[:active] for part in state))
    return can_run_compiled(weights, dtype, bias, inputs, batch_sizes, beginning)


def read_compiled(
    products: CompiledProducts,
    bias: torch.Tensor,
    inputs: torch.Tensor,
    batch_sizes: Sequence[int],
    state: LstmState,
    clips: Clips,
    output_scale: Optional[torch.Tensor],
) -> Tuple[torch.Tensor, LstmState]:
    """
    Reads as `run_steps`. The result for a sentence doesn't depend on others, to the bit, where that
    of a `WeightProduct` doesn't.

    # Parameters

    products : `CompiledProducts`
        The weights.
    bias, inputs, batch_sizes, state, clips, output_scale
        As in `run_steps`.

    # Returns

    `Tuple[torch.Tensor, LstmState]`
        Outputs, of shape `(read, dim)`, and each sentence's own last state.
    """
    filling = products.filling
    bias, scale = filling.bias(bias), filling.scale(output_scale)
    going = filling.state(state)
    outputs: List[torch.Tensor] = []
    ended: List[LstmState] = []  # the last first, as shorter sentences come last
    start = 0
    for group in step_groups(batch_sizes, products.at_once):
        active, end = group[0], start + sum(group)
        ended.append(LstmState(*(part[active:] for part in going)))
        going = LstmState(*(part[:active] for part in going))
        gates = products.from_inputs(inputs[start:end])
        done = run_forward(products.panels, bias, gates, group, going, clips, scale)
        outputs.append(filling.own_outputs(done.outputs.to(inputs.dtype)))
        going, start = done.last, end
    ended.append(going)
    last = LstmState(*(torch.cat(parts) for parts in zip(*reversed(ended))))
    return torch.cat(outputs), filling.own_state(last)
