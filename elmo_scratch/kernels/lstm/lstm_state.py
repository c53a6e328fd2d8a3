"""What an LSTM hands on from one position to the next."""

from typing import List, NamedTuple

import torch


class LstmState(NamedTuple):
    """
    The state of one layer, or of several layers one upon the other.

    # Parameters

    hidden : `torch.Tensor`
        Shape `(..., batch, dim)`: the last outputs.
    cell : `torch.Tensor`
        Shape `(..., batch, cell)`: the memory cells.
    """

    hidden: torch.Tensor
    cell: torch.Tensor

    def layer(self, number: int) -> "LstmState":
        """The state of one of several layers."""
        return LstmState(self.hidden[number], self.cell[number])

    def half(self, number: int) -> "LstmState":
        """The state of the first or of the second half of the layers: of one direction."""
        return LstmState(self.hidden.chunk(2)[number], self.cell.chunk(2)[number])

    def rows(self, order: torch.Tensor) -> "LstmState":
        """
        # Parameters

        order : `torch.Tensor`
            Shape `(rows,)`: numbers of rows.

        # Returns

        `LstmState`
            The state of these rows, in this order.
        """
        return LstmState(self.hidden.index_select(-2, order), self.cell.index_select(-2, order))

    @classmethod
    def cat(cls, states: List["LstmState"]) -> "LstmState":
        """The states of several groups of layers as one."""
        return cls(
            torch.cat([state.hidden for state in states]),
            torch.cat([state.cell for state in states]),
        )

    @classmethod
    def stack(cls, states: List["LstmState"]) -> "LstmState":
        """The states of layers as one, of shape `(layers, batch, ...)`."""
        return cls(
            torch.stack([state.hidden for state in states]),
            torch.stack([state.cell for state in states]),
        )
