import torch

from elmo_scratch.modules import LstmState

LAYERS, BATCH, DIM, CELL = 2, 3, 5, 7


def state_of(layers: int = LAYERS, start: float = 0.0) -> LstmState:
    hidden = torch.arange(layers * BATCH * DIM) + start
    cell = torch.arange(layers * BATCH * CELL) + start
    return LstmState(hidden.view(layers, BATCH, DIM), cell.view(layers, BATCH, CELL))


def same(one: LstmState, other: LstmState) -> bool:
    return all(torch.equal(part, twin) for part, twin in zip(one, other, strict=True))


def test_rows_are_taken_in_the_order_that_is_asked_for() -> None:
    state = state_of()
    taken = state.rows(torch.tensor([2, 0]))
    assert torch.equal(taken.hidden, state.hidden[:, [2, 0]])
    assert torch.equal(taken.cell, state.cell[:, [2, 0]])


def test_rows_of_one_layer_are_taken_likewise() -> None:
    state = state_of().layer(1)
    taken = state.rows(torch.tensor([1]))
    assert torch.equal(taken.hidden, state.hidden[[1]])
    assert torch.equal(taken.cell, state.cell[[1]])


def test_layers_that_are_stacked_come_back_one_by_one() -> None:
    first, second = state_of().layer(0), state_of(start=100.0).layer(1)
    stacked = LstmState.stack([first, second])
    assert stacked.hidden.shape == (2, BATCH, DIM)
    assert same(stacked.layer(0), first)
    assert same(stacked.layer(1), second)


def test_the_halves_put_together_are_the_whole() -> None:
    state = state_of(layers=4)
    left_to_right, right_to_left = state.half(0), state.half(1)
    assert torch.equal(left_to_right.hidden, state.hidden[:2])
    assert torch.equal(right_to_left.cell, state.cell[2:])
    assert same(LstmState.cat([left_to_right, right_to_left]), state)
