import torch

from elmo_scratch.kernels.lstm.run import Clips, LstmGradients, LstmRun, LstmWeights
from elmo_scratch.modules import LstmState
from tests.kernels.lstm.random_run import Incoming, back, reference

DIM, CELLS, BATCH_SIZES = 3, 5, [3, 2, 2, 1]
"""Three sentences of four, three and one positions."""

ROWS = torch.tensor([row for active in BATCH_SIZES for row in range(active)])
"""The sentence of each position that is read."""


def random_run() -> LstmRun:
    """In float64, without clips."""
    torch.manual_seed(13)
    shapes = [(4 * CELLS, DIM), (4 * CELLS, DIM), (DIM, CELLS)]
    return LstmRun(
        LstmWeights(*(torch.randn(shape).double() for shape in shapes)),
        torch.double,
        torch.zeros(4 * CELLS).double(),
        torch.randn(len(ROWS), DIM).double(),
        BATCH_SIZES,
        LstmState(torch.randn(3, DIM).double(), torch.randn(3, CELLS).double()),
        Clips(None, None),
        None,
    )


def gradients_from(outputs: torch.Tensor, state: LstmState) -> LstmGradients:
    run = random_run()
    return back(run, reference(run), Incoming(outputs, state))


def no_state_gradients() -> LstmState:
    return LstmState(torch.zeros(3, DIM).double(), torch.zeros(3, CELLS).double())


def test_a_gradient_reaches_its_own_sentence_and_what_was_read_before_it() -> None:
    outputs = torch.zeros(len(ROWS), DIM).double()
    third_of_second = 6  # batch_sizes 3 + 2, then the second row of the third step
    outputs[third_of_second] = 1.0
    found = gradients_from(outputs, no_state_gradients())
    reached = found.gates.any(dim=1)
    assert ROWS[reached].unique().tolist() == [1]
    assert reached.nonzero().flatten().tolist() == [1, 4, 6]
    assert found.state.hidden.any(dim=1).tolist() == [False, True, False]
    assert found.state.cell.any(dim=1).tolist() == [False, True, False]


def test_the_gradient_of_a_last_state_enters_where_its_sentence_ends() -> None:
    state = no_state_gradients()
    state.hidden[0], state.cell[2] = 1.0, 1.0
    found = gradients_from(torch.zeros(len(ROWS), DIM).double(), state)
    assert ROWS[found.gates.any(dim=1)].tolist() == [0, 2, 0, 0, 0]
    # The last output of the first sentence; the third one's memory is not projected again.
    assert found.projected[-1].tolist() == [1.0] * DIM
    assert not found.projected[2].any()


def test_sentences_without_positions_hand_their_gradients_through() -> None:
    run = random_run()
    nothing = run._replace(batch_sizes=[], inputs=run.inputs[:0])
    state = LstmState(torch.ones(3, DIM).double(), torch.ones(3, CELLS).double())
    found = back(nothing, reference(nothing), Incoming(torch.zeros(0, DIM).double(), state))
    assert torch.equal(found.state.hidden, state.hidden)
    assert torch.equal(found.state.cell, state.cell)
    assert found.gates.shape == (0, 4 * CELLS) and found.cell_outputs.shape == (0, CELLS)
