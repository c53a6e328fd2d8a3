"""The states that sentences start from, and the states kept for the next batch."""

from typing import Optional

import torch

from elmo_scratch.kernels import LstmState

STATES = ("carry", "reset", "warm")
"""
The kinds of state. `carry`: each row of a batch starts from the last state of the same row in the
batch before, as in the original, so that vectors depend on earlier text. `reset`: each sentence
starts from zeros. `warm`: each sentence starts from one fixed state.
"""


class StateMemory(torch.nn.Module):
    """
    Gives a batch the states that it starts from, and takes its last states.

    `state` is one of `STATES`, else a `ValueError` is raised. The sizes `num_layers`, `dim` and
    `cell_size` are those of a state over the layers of both directions.
    """

    hidden: torch.Tensor
    cell: torch.Tensor

    def __init__(self, state: str, num_layers: int, dim: int, cell_size: int) -> None:
        super().__init__()
        if state not in STATES:
            raise ValueError(f"expected a `state` among {', '.join(STATES)}, but got {state!r}")
        self.state = state
        self._sizes = {"hidden": (num_layers, dim), "cell": (num_layers, cell_size)}
        self._carried: Optional[LstmState] = None
        if state == "warm":
            # Stored with the weights; NaN until a text has been read.
            for name, size in self._sizes.items():
                self.register_buffer(name, torch.full(size, float("nan")))

    def start(self, like: torch.Tensor, batch: int, first_row: int = 0) -> LstmState:
        """
        The states that `batch` sentences start from, of shape `(layers, batch, ...)`, with the type
        and the device of `like`. If the sentences are a part of a batch, `first_row` is the row of
        the first one. Raises a `ValueError` if the state is `warm` and no text has been read.
        """
        if self.state == "warm":
            if not self.is_warm:
                raise ValueError(
                    "the `warm` state is not known yet: read a text with `warm_up` first, or load "
                    "weights that were saved after that"
                )
            return LstmState(
                *(
                    kept.to(like).unsqueeze(1).expand(-1, batch, -1)
                    for kept in (self.hidden, self.cell)
                )
            )
        start = self.zeros(like, batch)
        if self._carried is not None:
            for part, carried in zip(start, self._carried):
                own = carried[:, first_row : first_row + batch]
                part[:, : own.size(1)] = own
        return start

    @property
    def is_warm(self) -> bool:
        """Whether the warm state is known."""
        return self.state == "warm" and not bool(self.hidden.isnan().any())

    def zeros(self, like: torch.Tensor, batch: int) -> LstmState:
        """States of zeros, of shape `(layers, batch, ...)`."""
        return LstmState(
            **{
                name: like.new_zeros(num_layers, batch, size)
                for name, (num_layers, size) in self._sizes.items()
            }
        )

    def keep(self, final: LstmState, first_row: int = 0) -> None:
        """
        Takes the last states of a batch, of shape `(layers, batch, ...)`, from row `first_row` on.
        Other rows keep their states.
        """
        if self.state != "carry":
            return
        parts = [part.detach() for part in final]
        batch = parts[0].size(1)
        if self._carried is not None or first_row > 0:
            before = self.start(parts[0], first_row)
            after = self._carried or before
            parts = [
                torch.cat([zeros_or_kept, part, carried[:, first_row + batch :].to(part)], dim=1)
                for zeros_or_kept, part, carried in zip(before, parts, after)
            ]
        self._carried = LstmState(*parts)

    def carried(self) -> Optional[LstmState]:
        """
        The states that the next batch starts from if states are carried, of shape
        `(layers, batch, ...)`, for all rows so far. `None` stands for zeros.
        """
        return self._carried

    def carry_on_from(self, carried: Optional[LstmState]) -> None:
        """
        Lets the next batch start from an earlier result of `carried`, perhaps from another process.
        Raises a `ValueError` if the state is not `carry`, or `carried` is from a network of other
        sizes.
        """
        if self.state != "carry":
            raise ValueError(f"only where `state` is `carry` is one carried on, not {self.state!r}")
        for name, part in carried._asdict().items() if carried is not None else ():
            num_layers, size = self._sizes[name]
            if part.dim() != 3 or (part.size(0), part.size(2)) != (num_layers, size):
                raise ValueError(
                    f"expected a state whose {name!r} has the shape ({num_layers}, batch, {size}), "
                    f"but got the shape {tuple(part.shape)}"
                )
        self._carried = carried

    def forget(self) -> None:
        """Lets the next batch start from zeros if states are carried."""
        self._carried = None

    def forget_some(self, probability: float) -> None:
        """
        Lets each row of the next batch start from zeros with this probability, if states are
        carried. With 0 no random number is drawn.
        """
        if self._carried is None or probability == 0:
            return
        # Drawn on the CPU, where a recovered training has its state at first.
        is_kept = torch.rand(self._carried.hidden.size(1), 1, device="cpu") >= probability
        self._carried = LstmState(
            *(part.where(is_kept.to(part.device), 0) for part in self._carried)
        )

    def fix(self, final: LstmState) -> None:
        """
        Lets every sentence start from `final`, of shape `(layers, 1, ...)`. Raises a `ValueError`
        if the state is not `warm`.
        """
        if self.state != "warm":
            raise ValueError(f"only a biLM whose `state` is `warm` warms up, not {self.state!r}")
        with torch.no_grad():
            self.hidden.copy_(final.hidden.squeeze(1))
            self.cell.copy_(final.cell.squeeze(1))
