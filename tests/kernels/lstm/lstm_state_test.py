import torch

from elmo_scratch.modules import LstmState

LAYERS, BATCH, DIM, CELL = 2, 3, 5, 7


def state_of(layers: int = LAYERS, start: float = 0.0) -> LstmState:
    hidden = torch.arange(layers * BATCH * DIM) + start
    cell = torch.arange(layers * BATCH * CELL) + start
    return LstmState(hidden.view(layers, BATCH, DIM), cell.view(layers, BATCH, CELL))


def test_rows_are_taken_in_the_order_that_is_asked_for() -> None:
    state = state_of()
    taken = state.rows(torch.tensor([2, 0]))
    assert torch.equal(taken.hidden, state.hidden[:, [2, 0]])
    assert torch.equal(taken.cell, state.cell[:, [2, 0]])


def test_rows_of_one_layer_are_taken_likewise() -> None:
    state = LstmState(*(part[1] for part in state_of()))
    taken = state.rows(torch.tensor([1]))
    assert torch.equal(taken.hidden, state.hidden[[1]])
    assert torch.equal(taken.cell, state.cell[[1]])
