"""What is kept of a run of an LSTM until its backward pass."""

from typing import List, NamedTuple, Optional, Protocol, Sequence

import torch

from elmo_scratch.modules.lstms.lstm_state import LstmState
from elmo_scratch.modules.lstms.steps import Clips


class RunGradients(NamedTuple):
    """
    Gradients of all that went into a run, and what the weights' own are made with.

    # Parameters

    gates : `torch.Tensor`
        Shape `(read, 4 * cell)`, before the gates' nonlinearities, in the precision of products.
    projected : `torch.Tensor`
        Shape `(read, dim)`, before clipping.
    opened : `torch.Tensor`
        Shape `(read, cell)`: not a gradient, but what was projected, `σ(o) tanh(c)`.
    state : `LstmState`
        Of shape `(batch, ...)`.
    """

    gates: torch.Tensor
    projected: torch.Tensor
    opened: torch.Tensor
    state: LstmState


class RunBackward(Protocol):
    """The backward pass of a run. It holds no tensor."""

    def __call__(
        self,
        kept: Sequence[torch.Tensor],
        batch_sizes: Sequence[int],
        clips: Clips,
        output_scale: Optional[torch.Tensor],
        output_gradients: torch.Tensor,
        state_gradients: Optional[LstmState],
    ) -> RunGradients:
        """
        # Parameters

        kept : `Sequence[torch.Tensor]`
            Those of the `KeptRun`.
        batch_sizes, clips, output_scale
            As the run was given them.
        output_gradients : `torch.Tensor`
            Shape `(read, dim)`.
        state_gradients : `Optional[LstmState]`
            Of shape `(batch, ...)`, of each sentence's last state; `None` stands for zeros.
        """


class KeptRun(NamedTuple):
    """
    What an LSTM has read, and how to go back.

    # Parameters

    outputs : `torch.Tensor`
        Shape `(read, dim)`.
    state : `LstmState`
        Of shape `(batch, ...)`: each sentence's own last state.
    kept : `List[torch.Tensor]`
        What the backward pass needs.
    backward : `RunBackward`
        The backward pass.
    """

    outputs: torch.Tensor
    state: LstmState
    kept: List[torch.Tensor]
    backward: RunBackward


def gradients_or_zeros(
    given: Optional[LstmState], output_gradients: torch.Tensor, cells: Sequence[int]
) -> LstmState:
    """
    # Parameters

    given : `Optional[LstmState]`
        Gradients of last states, if there are any.
    output_gradients : `torch.Tensor`
        Shape `(read, dim)`.
    cells : `Sequence[int]`
        The shape of memory, `(batch, cell)`.

    # Returns

    `LstmState`
        Gradients, of shape `(batch, ...)`.
    """
    if given is not None:
        return given
    hidden = output_gradients.new_zeros(cells[0], output_gradients.size(1))
    return LstmState(hidden, output_gradients.new_zeros(*cells))
