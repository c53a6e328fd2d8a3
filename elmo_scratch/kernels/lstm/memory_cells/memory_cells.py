"""The pointwise part of an LSTM's step."""

from abc import ABC, abstractmethod
from typing import NamedTuple, Optional

import torch


class CellOutput(NamedTuple):
    """
    What a step makes of its gates, for the `active` sentences that have not ended.

    # Parameters

    cell : `torch.Tensor`
        Shape `(active, cell)`: memory after the step, clipped.
    output : `torch.Tensor`
        Shape `(active, cell)`, of the type of the gates: what goes on to the projection.
    gates : `torch.Tensor`
        Shape `(active, 4 * cell)`: what the backward pass needs to know of the gates.
    """

    cell: torch.Tensor
    output: torch.Tensor
    gates: torch.Tensor


class MemoryCells(ABC):
    """
    The memory cells of an LSTM:

        c = clip(σ(f) c + σ(i) tanh(j))
        output = σ(o) tanh(c)

    A number's result depends neither on the shape of the tensors, nor on its place there, nor on
    how many threads there are. Abstract.
    """

    @abstractmethod
    def lstm_cell(
        self, gates: torch.Tensor, cell: torch.Tensor, clip: Optional[float]
    ) -> CellOutput:
        """
        # Parameters

        gates : `torch.Tensor`
            Shape `(active, 4 * cell)`, in the order i, j, f, o, the forget gate's constant
            included; may be written over.
        cell : `torch.Tensor`
            Shape `(active, cell)`: memory before the step.
        clip : `Optional[float]`
            The bound of memory, if there is one.
        """

    @abstractmethod
    def lstm_cell_backward(
        self,
        cell_output: CellOutput,
        previous_cell: torch.Tensor,
        clip: Optional[float],
        output_gradient: torch.Tensor,
        cell_gradient: torch.Tensor,
        gates_gradient: torch.Tensor,
    ) -> None:
        """
        The backward pass through `lstm_cell`.

        # Parameters

        cell_output : `CellOutput`
            What it returned.
        previous_cell, clip
            What it was given.
        output_gradient : `torch.Tensor`
            Shape `(active, cell)`.
        cell_gradient : `torch.Tensor`
            Shape `(active, cell)`, contiguous: that of memory after the step; written over with
            that of memory before it.
        gates_gradient : `torch.Tensor`
            Shape `(active, 4 * cell)`, contiguous: written.
        """
