"""The arguments, results and states of a run of an LSTM over a batch."""

from typing import Iterator, List, NamedTuple, Optional, Protocol, Sequence, Tuple

import torch


class LstmState(NamedTuple):
    """
    The state of one layer, or of a stack of layers.

    # Parameters

    hidden : `torch.Tensor`
        Shape `(..., batch, dim)`: the last outputs.
    cell : `torch.Tensor`
        Shape `(..., batch, cell)`: the memory cells.
    """

    hidden: torch.Tensor
    cell: torch.Tensor

    def rows(self, order: torch.Tensor) -> "LstmState":
        """The states of the rows numbered in `order`, shape `(rows,)`, in this order."""
        return LstmState(self.hidden.index_select(-2, order), self.cell.index_select(-2, order))


class LstmWeights(NamedTuple):
    """
    The matrices of an LSTM. The gates lie in the order i, j, f, o.

    # Parameters

    input_weight : `torch.Tensor`
        Shape `(4 * cell, input_dim)`.
    recurrent_weight : `torch.Tensor`
        Shape `(4 * cell, dim)`.
    projection_weight : `torch.Tensor`
        Shape `(dim, cell)`, or `(0, cell)` where outputs are not projected.
    """

    input_weight: torch.Tensor
    recurrent_weight: torch.Tensor
    projection_weight: torch.Tensor


class Clips(NamedTuple):
    """The bounds of memory cells and of projected outputs; `None` where there is none."""

    cell: Optional[float]
    projection: Optional[float]


class LstmRun(NamedTuple):
    """
    All arguments of one run of an LSTM over a batch.

    # Parameters

    weights : `LstmWeights`
        The matrices.
    dtype : `torch.dtype`
        The precision of products.
    bias : `torch.Tensor`
        Shape `(4 * cell,)`, without the constant of the forget gate: see `gate_bias`.
    inputs : `torch.Tensor`
        Shape `(packed, input_dim)`, in the order of a `PackedOrder`.
    batch_sizes : `Sequence[int]`
        How many sentences are read at each step; never grows.
    state : `LstmState`
        Of shape `(batch, ...)`: where each sentence starts. Sentences without a position come last.
    clips : `Clips`
        Bounds of cells and outputs.
    recurrent_dropout_mask : `Optional[torch.Tensor]`
        Shape `(batch, dim)`: multiplies a sentence's outputs at every step.
    has_own_weights : `bool`, optional (default = `False`)
        Whether the recurrent weights were made for this run alone, as dropped ones are. Nothing
        that is derived from them is kept for another run.
    """

    weights: LstmWeights
    dtype: torch.dtype
    bias: torch.Tensor
    inputs: torch.Tensor
    batch_sizes: Sequence[int]
    state: LstmState
    clips: Clips
    recurrent_dropout_mask: Optional[torch.Tensor]
    has_own_weights: bool = False

    def tensors(self) -> Tuple[torch.Tensor, ...]:
        """All tensors that may have a gradient."""
        return (self.inputs, *self.weights, self.bias, *self.state)

    def gate_bias(self) -> torch.Tensor:
        """The bias plus the forget gate's constant, 1. It has no gradient."""
        bias = self.bias.detach().clone(memory_format=torch.contiguous_format)
        bias.chunk(4)[2].add_(1.0)
        return bias


class LstmGradients(NamedTuple):
    """
    The gradients that a backward pass computes step by step. The weights' gradients are computed
    from them, by one product over all steps.

    `gates`, shape `(packed, 4 * cell)`, are gradients before the gates' nonlinearities, in the
    precision of products. `projected`, shape `(packed, dim)`, are gradients before clipping.
    `cell_outputs`, shape `(packed, cell)`, are not gradients, but the inputs of the projection,
    `σ(o) tanh(c)`. `state`, shape `(batch, ...)`, are gradients of the state that the run started
    from.
    """

    gates: torch.Tensor
    projected: torch.Tensor
    cell_outputs: torch.Tensor
    state: LstmState


class LstmBackward(Protocol):
    """The backward pass of a run. It holds no tensor."""

    def __call__(
        self,
        run: LstmRun,
        kept: Sequence[torch.Tensor],
        output_gradients: torch.Tensor,
        state_gradients: Optional[LstmState],
    ) -> LstmGradients:
        """
        Runs backward. `kept` is from the run's `LstmResult`; hooks on saved tensors may have
        changed the types and layouts of it and of the run's tensors. `output_gradients` have the
        shape `(packed, dim)`; `state_gradients` are of each sentence's last state, shape
        `(batch, ...)`, `None` for zeros.
        """


class LstmResult(NamedTuple):
    """
    The result of a run.

    # Parameters

    outputs : `torch.Tensor`
        Shape `(packed, dim)`.
    state : `LstmState`
        Of shape `(batch, ...)`: each sentence's last state.
    kept : `Sequence[torch.Tensor]`, optional (default = `()`)
        Tensors that the backward pass needs besides the run.
    backward : `LstmBackward`, optional (default = `None`)
        The backward pass, if there can be one.
    """

    outputs: torch.Tensor
    state: LstmState
    kept: Sequence[torch.Tensor] = ()
    backward: Optional[LstmBackward] = None


def gradients_or_zeros(
    given: Optional[LstmState], output_gradients: torch.Tensor, cell: torch.Tensor
) -> LstmState:
    """The gradients of last states; without `given`, zeros for the rows of `cell`."""
    if given is not None:
        return given
    hidden = output_gradients.new_zeros(len(cell), output_gradients.size(1))
    return LstmState(hidden, output_gradients.new_zeros(cell.shape))


def join_ended(ended: List[LstmState]) -> LstmState:
    """
    Joins the last states of groups of sentences, listed in the order they ended in, to one batch.
    """
    return LstmState(*(torch.cat(parts) for parts in zip(*reversed(ended))))


def step_groups(batch_sizes: Sequence[int], at_once: int) -> Iterator[List[int]]:
    """
    Groups the sizes of consecutive steps: each group has at most `at_once` positions, or one step.
    """
    group: List[int] = []
    positions = 0
    for active in batch_sizes:
        if group and positions + active > at_once:
            yield group
            group, positions = [], 0
        group.append(active)
        positions += active
    if group:
        yield group
