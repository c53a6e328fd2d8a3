from typing import Tuple

import torch

from elmo_scratch.modules import LstmState
from elmo_scratch.modules.lstms.memory_cells.plain import PlainMemoryCells
from elmo_scratch.modules.lstms.steps import Clips, LstmProducts, LstmWeights, Run, run_steps
from elmo_scratch.modules.lstms.steps_backward import RunGradients, run_steps_backward
from elmo_scratch.modules.products import WeightProduct

DIM, CELLS, BATCH_SIZES = 3, 5, [3, 2, 2, 1]
"""Three sentences of four, three and one positions."""

ROWS = torch.tensor([row for active in BATCH_SIZES for row in range(active)])
"""The sentence of each position that is read."""


def run(output_gradients: torch.Tensor, state: LstmState) -> Tuple[Run, RunGradients]:
    """There and back, without clips."""
    torch.manual_seed(13)
    weights = LstmWeights(
        torch.randn(4 * CELLS, DIM).double(),
        torch.randn(4 * CELLS, DIM).double(),
        torch.randn(DIM, CELLS).double(),
    )
    products = LstmProducts.of(weights, torch.double)
    start = LstmState(torch.randn(3, DIM).double(), torch.randn(3, CELLS).double())
    vectors = torch.randn(len(ROWS), DIM).double()
    bias = torch.zeros(4 * CELLS).double()
    clips = Clips(None, None)
    done = run_steps(products, bias, vectors, BATCH_SIZES, start, clips, keeps_steps=True)
    back = run_steps_backward(
        WeightProduct(weights.from_hidden.t(), torch.double),
        WeightProduct(weights.projection.t(), torch.double),
        done.memory_cells,
        done.steps,
        clips,
        None,
        output_gradients,
        state,
    )
    return done, back


def no_state_gradients() -> LstmState:
    return LstmState(torch.zeros(3, DIM).double(), torch.zeros(3, CELLS).double())


def test_a_gradient_reaches_its_own_sentence_and_what_was_read_before_it() -> None:
    gradients = torch.zeros(len(ROWS), DIM).double()
    third_of_second = 6  # batch_sizes 3 + 2, then the second row of the third step
    gradients[third_of_second] = 1.0
    _, back = run(gradients, no_state_gradients())
    reached = back.gates.any(dim=1)
    assert ROWS[reached].unique().tolist() == [1]
    assert reached.nonzero().flatten().tolist() == [1, 4, 6]
    assert back.state.hidden.any(dim=1).tolist() == [False, True, False]
    assert back.state.cell.any(dim=1).tolist() == [False, True, False]


def test_the_gradient_of_a_last_state_enters_where_its_sentence_ends() -> None:
    state = no_state_gradients()
    state.hidden[0], state.cell[2] = 1.0, 1.0
    _, back = run(torch.zeros(len(ROWS), DIM).double(), state)
    assert ROWS[back.gates.any(dim=1)].tolist() == [0, 2, 0, 0, 0]
    # The last output of the first sentence; the third one's memory is not projected again.
    assert back.projected[-1].tolist() == [1.0] * DIM
    assert not back.projected[2].any()


def test_a_sentence_without_positions_hands_its_gradient_through() -> None:
    state = LstmState(torch.ones(4, DIM).double(), torch.ones(4, CELLS).double())
    back = run_steps_backward(
        WeightProduct(torch.zeros(DIM, 4 * CELLS).double(), torch.double),
        None,
        PlainMemoryCells(),
        [],
        Clips(None, None),
        None,
        torch.zeros(0, DIM).double(),
        state,
    )
    assert torch.equal(back.state.hidden, state.hidden)
    assert torch.equal(back.state.cell, state.cell)
