import torch

from tests.modules.tiny_bilms import CELL, DIM, bilm_of

LAYERS, BATCH, POSITIONS = 3, 2, 5
MASK = torch.tensor([[True] * POSITIONS, [True] * 3 + [False] * 2])


def test_sentences_and_windows_come_with_the_state_that_they_end_with() -> None:
    bilm = bilm_of()
    vectors = torch.randn(BATCH, POSITIONS, DIM)
    start = bilm.new_state_memory("reset").zeros(vectors, BATCH)
    sentences = bilm.read_tokens(
        bilm.token_encoder(torch.ones(BATCH, 3).long(), MASK[:, :3]), start
    )
    windows = bilm.read_windows(vectors, vectors, MASK, start)
    assert sentences.output.layers.shape == (LAYERS, BATCH, POSITIONS, 2 * DIM)
    assert sentences.output.mask.shape == (BATCH, POSITIONS)
    assert windows.left_to_right.shape == windows.right_to_left.shape == (BATCH, POSITIONS, DIM)
    for state in (sentences.state, windows.state):
        assert state.hidden.shape == (2 * (LAYERS - 1), BATCH, DIM)
        assert state.cell.shape == (2 * (LAYERS - 1), BATCH, CELL)
