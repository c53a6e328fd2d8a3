from typing import List

import pytest
import torch

from elmo_scratch.kernels import Dropout
from elmo_scratch.modules import BiLm, LstmStack
from elmo_scratch.modules.sequences import PackedVectors
from tests.modules.tiny_bilms import DIM, bilm_of, read

CELL, SEED = 7, 5
IDS = torch.tensor([[2, 3, 0, 0, 0], [5, 6, 7, 8, 9], [1, 4, 2, 0, 0]])


def stack_of(share: float, *, locked: bool = True, dtype: torch.dtype = torch.double) -> LstmStack:
    torch.manual_seed(13)
    return LstmStack(DIM, 2, CELL, dropout=share, locked_dropout=locked).to(dtype)


def read_by_hand(
    stack: LstmStack, inputs: torch.Tensor, sizes: List[int], rows: List[int]
) -> List[torch.Tensor]:
    """Each layer of the stack, its inputs multiplied place by place; after `manual_seed`."""
    sentences = [row for size in sizes for row in rows[:size]]
    outputs: List[torch.Tensor] = []
    for number, layer in enumerate(stack.layers):
        mask = Dropout(stack.dropout.p)(inputs.new_ones(len(rows), inputs.size(1)))
        whole = outputs[-1] if outputs else inputs
        dropped = torch.stack([part * mask[row] for part, row in zip(whole, sentences)])
        done = layer(PackedVectors(dropped, sizes)).outputs
        outputs.append(done + dropped if number else done)
    return outputs


@pytest.mark.parametrize("sizes", [[3, 2, 2, 1], [3, 3, 3]])
@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 1]])
def test_a_sentence_loses_the_same_numbers_at_all_positions(
    sizes: List[int], rows: List[int]
) -> None:
    stack, inputs = stack_of(0.5), torch.randn(sum(sizes), DIM).double()
    torch.manual_seed(SEED)
    expected = read_by_hand(stack, inputs, sizes, rows)
    torch.manual_seed(SEED)
    found = stack(PackedVectors(inputs, sizes, torch.tensor(rows))).layers
    for ours, plain in zip(found, expected, strict=True):
        assert torch.allclose(ours, plain, rtol=0, atol=1e-12)
    if rows == [0, 1, 2]:
        torch.manual_seed(SEED)
        assert torch.equal(stack(PackedVectors(inputs, sizes)).layers[-1], found[-1])


def test_gradients_are_those_of_finite_differences() -> None:
    stack, sizes = stack_of(0.4), [3, 2, 1]
    inputs = torch.randn(sum(sizes), DIM).double().requires_grad_()

    def top(inputs: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(SEED)
        return stack(PackedVectors(inputs, sizes)).layers[-1]

    assert torch.autograd.gradcheck(top, (inputs,))


@pytest.mark.parametrize("share, is_trained", [(0.5, False), (0.0, True)])
def test_without_dropout_nothing_is_locked(share: float, is_trained: bool) -> None:
    stack, inputs = stack_of(share).train(is_trained), torch.randn(6, DIM).double()
    before = torch.get_rng_state()
    layers = stack(PackedVectors(inputs, [3, 2, 1])).layers
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(
        layers[-1], stack_of(0.0, locked=False)(PackedVectors(inputs, [3, 2, 1])).layers[-1]
    )


def test_nothing_to_read_is_nothing_to_drop() -> None:
    assert stack_of(0.5)(PackedVectors(torch.zeros(0, DIM).double(), [])).layers[-1].shape == (
        0,
        DIM,
    )


def test_what_a_sentence_loses_does_not_depend_on_how_long_the_others_are() -> None:
    bilm = bilm_of(dropout=0.5, locked_dropout=True).train()
    found = []
    for first in ([2, 3, 0, 0, 0], [2, 3, 9, 9, 0], [2, 3, 9, 9, 9]):
        ids = torch.cat([torch.tensor([first]), IDS[1:]])
        torch.manual_seed(SEED)
        found.append(read(bilm, ids).layers[:, 1:])
    assert torch.allclose(found[0], found[1], rtol=0, atol=1e-6)
    assert torch.allclose(found[0], found[2], rtol=0, atol=1e-6)
    torch.manual_seed(SEED + 1)
    assert not torch.allclose(read(bilm, IDS).layers[1:, 1:], found[0][1:], rtol=0, atol=1e-6)


def test_a_row_of_a_window_loses_the_same_numbers_at_all_positions() -> None:
    bilm: BiLm = bilm_of(dropout=0.5, locked_dropout=True).train()
    given: List[torch.Tensor] = []
    for stack in (bilm.left_to_right, bilm.right_to_left):
        stack.layers[0].register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].vectors))
    mask = torch.tensor([[True] * 2 + [False] * 3, [True] * 5, [True] * 5])
    start = bilm.new_state_memory("carry").zeros(torch.zeros(()), 3)
    torch.manual_seed(SEED)
    bilm.read_windows(torch.ones(3, 5, DIM), torch.ones(3, 5, DIM), mask, start)
    patterns = []
    for read_there in given:
        # Rows 1 and 2 come first in the order of reading, and row 0 at the first two steps only.
        steps = [read_there[:3], read_there[3:6], *read_there[6:].split(2)]
        for step in steps:
            assert torch.equal(step, steps[0][: len(step)])
        patterns.append(steps[0])
    assert not torch.equal(*patterns)
