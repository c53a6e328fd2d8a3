import copy
import pickle
from typing import Callable

import pytest
import torch

from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstm import StateMemory

LAYERS, DIM, CELL = 2, 3, 7
LIKE = torch.zeros(())


def memory_of(state: str) -> StateMemory:
    return StateMemory(state, LAYERS, DIM, CELL)


def rows_of(*numbers: float) -> LstmState:
    """The state of a batch of which each row is filled with one number, its cells with -1 times."""
    rows = torch.tensor(numbers, dtype=torch.float).view(1, -1, 1)
    return LstmState(rows.repeat(LAYERS, 1, DIM), -rows.repeat(LAYERS, 1, CELL))


def same(one: LstmState, other: LstmState) -> bool:
    return all(torch.equal(part, twin) for part, twin in zip(one, other, strict=True))


def test_reset_starts_every_sentence_from_zeros() -> None:
    memory = memory_of("reset")
    assert same(memory.start(LIKE, 2), rows_of(0, 0))
    memory.keep(rows_of(5, 6))
    assert same(memory.start(LIKE, 2), rows_of(0, 0))
    assert not memory.state_dict()


def test_carry_starts_each_row_from_where_it_last_ended() -> None:
    memory = memory_of("carry")
    assert same(memory.start(LIKE, 2), rows_of(0, 0))
    memory.keep(rows_of(5, 6))
    assert same(memory.start(LIKE, 2), rows_of(5, 6))
    memory.keep(rows_of(7, 8))
    assert same(memory.start(LIKE, 2), rows_of(7, 8))


def test_rows_of_a_larger_batch_that_are_new_start_from_zeros() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5, 6))
    assert same(memory.start(LIKE, 4), rows_of(5, 6, 0, 0))
    memory.keep(rows_of(1, 2, 3, 4))
    assert same(memory.start(LIKE, 4), rows_of(1, 2, 3, 4))


def test_rows_that_a_smaller_batch_does_not_have_keep_what_they_had() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5, 6, 7))
    assert same(memory.start(LIKE, 1), rows_of(5))
    memory.keep(rows_of(8))
    assert same(memory.start(LIKE, 3), rows_of(8, 6, 7))


def test_a_part_of_a_batch_has_rows_of_its_own() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5, 6, 7, 8))
    assert same(memory.start(LIKE, 2, 1), rows_of(6, 7))
    memory.keep(rows_of(1, 2), 1)
    assert same(memory.start(LIKE, 5), rows_of(5, 1, 2, 8, 0))
    memory.keep(rows_of(3, 4), 3)
    assert same(memory.start(LIKE, 5), rows_of(5, 1, 2, 3, 4))


def test_the_rows_before_a_part_that_were_never_there_are_zeros() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5), 2)
    assert same(memory.start(LIKE, 3), rows_of(0, 0, 5))
    assert same(memory.start(LIKE, 2, 2), rows_of(5, 0))


def test_an_empty_batch_changes_nothing() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5, 6))
    assert memory.start(LIKE, 0).hidden.shape == (LAYERS, 0, DIM)
    memory.keep(rows_of())
    assert same(memory.start(LIKE, 2), rows_of(5, 6))


def test_an_empty_batch_may_come_first() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of())
    assert same(memory.start(LIKE, 2), rows_of(0, 0))


def test_what_is_forgotten_starts_from_zeros() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5, 6))
    memory.forget()
    assert same(memory.start(LIKE, 2), rows_of(0, 0))


def test_some_rows_are_forgotten_as_a_whole() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(*range(1, 1001)))
    torch.manual_seed(0)
    memory.forget_some(0.25)
    start = memory.start(LIKE, 1000)
    is_kept = start.hidden[0, :, 0] != 0
    assert 200 < 1000 - int(is_kept.sum()) < 300
    assert same(start, rows_of(*(torch.arange(1.0, 1001) * is_kept).tolist()))


def test_what_is_no_number_is_forgotten_too() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(float("inf"), float("nan")))
    memory.forget_some(1.0)
    assert same(memory.start(LIKE, 2), rows_of(0, 0))


def test_no_random_number_is_drawn_where_nothing_is_forgotten() -> None:
    memory = memory_of("carry")
    before = torch.get_rng_state()
    memory.forget_some(0.5)
    memory.keep(rows_of(5, 6))
    memory.forget_some(0.0)
    assert same(memory.start(LIKE, 2), rows_of(5, 6))
    assert torch.equal(torch.get_rng_state(), before)


def test_no_gradient_flows_from_one_batch_into_the_one_before() -> None:
    memory = memory_of("carry")
    memory.keep(LstmState(*(part.requires_grad_() for part in rows_of(5))))
    assert not any(part.requires_grad for part in memory.start(LIKE, 1))


def test_a_state_that_is_written_to_is_not_the_one_that_is_carried() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5))
    memory.start(LIKE, 1).hidden.zero_()
    assert same(memory.start(LIKE, 1), rows_of(5))


def test_states_of_inference_mode_are_carried_into_a_training() -> None:
    memory = memory_of("carry")
    with torch.inference_mode():
        memory.keep(rows_of(5, 6))
    start = memory.start(LIKE, 2)
    scale = torch.ones((), requires_grad=True)
    (start.hidden * scale).sum().backward()
    assert scale.grad is not None
    assert scale.grad.item() == LAYERS * DIM * (5 + 6)
    memory.keep(rows_of(7))
    assert same(memory.start(LIKE, 2), rows_of(7, 6))


def test_a_carried_state_follows_the_vectors_type() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5, 6))
    assert {part.dtype for part in memory.start(LIKE.double(), 2)} == {torch.float64}
    memory.keep(LstmState(*(part.double() for part in rows_of(7))))
    assert same(memory.start(LIKE, 2), rows_of(7, 6))


def test_what_is_carried_is_not_kept_in_a_file() -> None:
    memory = memory_of("carry")
    memory.keep(rows_of(5, 6))
    assert not memory.state_dict()


def test_warm_starts_every_sentence_from_one_state() -> None:
    memory = memory_of("warm")
    memory.fix(rows_of(5))
    assert same(memory.start(LIKE, 3), rows_of(5, 5, 5))
    memory.keep(rows_of(7, 8, 9))
    assert same(memory.start(LIKE, 2), rows_of(5, 5))
    assert memory.start(LIKE, 0).cell.shape == (LAYERS, 0, CELL)
    memory.forget()
    assert same(memory.start(LIKE, 1), rows_of(5))


def test_a_warm_state_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="`warm` state is not known yet.*`warm_up`"):
        memory_of("warm").start(LIKE, 2)


@pytest.mark.parametrize("state", ["carry", "reset"])
def test_only_what_is_warm_can_be_fixed(state: str) -> None:
    with pytest.raises(ValueError, match=f"`state` is `warm` warms up, not '{state}'"):
        memory_of(state).fix(rows_of(5))


def test_the_warm_state_is_kept_in_a_file() -> None:
    memory, loaded = memory_of("warm"), memory_of("warm")
    memory.fix(rows_of(5))
    shapes = {name: tuple(tensor.shape) for name, tensor in memory.state_dict().items()}
    assert shapes == {"hidden": (LAYERS, DIM), "cell": (LAYERS, CELL)}
    loaded.load_state_dict(memory.state_dict())
    assert same(loaded.start(LIKE, 2), rows_of(5, 5))


def test_the_warm_state_moves_with_the_weights() -> None:
    memory = memory_of("warm")
    memory.fix(rows_of(5))
    memory.double()
    assert memory.hidden.dtype == memory.cell.dtype == torch.float64
    assert {part.dtype for part in memory.start(LIKE.double(), 2)} == {torch.float64}
    assert same(memory.start(LIKE, 1), rows_of(5))


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
@pytest.mark.parametrize("state", ["carry", "warm"])
def test_copies_go_ways_of_their_own(
    state: str, twin_of: Callable[[StateMemory], StateMemory]
) -> None:
    memory = memory_of(state)
    memory.keep(rows_of(5))
    if state == "warm":
        memory.fix(rows_of(5))
    twin = twin_of(memory)
    assert same(twin.start(LIKE, 1), rows_of(5))
    twin.keep(rows_of(6))
    if state == "warm":
        twin.fix(rows_of(6))
    assert same(twin.start(LIKE, 1), rows_of(6))
    assert same(memory.start(LIKE, 1), rows_of(5))


def test_a_way_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="`state` among carry, reset, warm, but got 'cold'"):
        memory_of("cold")


def test_another_memory_carries_on() -> None:
    memory, other = memory_of("carry"), memory_of("carry")
    memory.keep(rows_of(5, 6))
    memory.keep(rows_of(7))
    other.carry_on_from(memory.carried())
    assert same(other.start(LIKE, 3), rows_of(7, 6, 0))
    other.carry_on_from(memory_of("carry").carried())
    assert same(other.start(LIKE, 2), rows_of(0, 0))


@pytest.mark.parametrize("state", ["reset", "warm"])
def test_only_what_is_carried_is_carried_on(state: str) -> None:
    memory = memory_of(state)
    memory.keep(rows_of(5))
    assert memory.carried() is None
    with pytest.raises(ValueError, match=f"only where `state` is `carry`.*'{state}'"):
        memory.carry_on_from(rows_of(5))


def test_a_state_of_another_network_is_not_carried_on() -> None:
    other = StateMemory("carry", LAYERS, DIM + 1, CELL)
    other.keep(other.start(LIKE, 2))
    with pytest.raises(
        ValueError, match=r"'hidden' has the shape \(2, batch, 3\), but .*\(2, 2, 4\)"
    ):
        memory_of("carry").carry_on_from(other.carried())
