import pytest
import torch

from elmo_scratch.modules import BiLm, Predictions, predict_sentences, predict_windows
from elmo_scratch.modules.predictions import LastLayer
from elmo_scratch.modules.token_encoders import WordEncoder

DIM = 2


def test_in_sentences_each_word_is_predicted_from_both_sides() -> None:
    # Two sentences of two words and of one, between the marks 8 and 9.
    words = torch.tensor([[8, 1, 2, 9], [8, 3, 9, 0]])
    mask = words > 0
    top = torch.arange(2 * 4 * 2 * DIM).float().view(2, 4, 2 * DIM)
    found = Predictions.of_sentences(top, words, mask)
    states, targets = found.states, found.targets
    assert (found.num_left_to_right, found.fullness) == (5, 1.0)
    assert found.rows.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    assert targets.tolist() == [1, 2, 9, 3, 9, 8, 1, 2, 8, 3]
    left_to_right, right_to_left = top[..., :DIM], top[..., DIM:]
    assert torch.equal(states[:5], torch.cat([left_to_right[0, :3], left_to_right[1, :2]]))
    assert torch.equal(states[5:], torch.cat([right_to_left[0, 1:], right_to_left[1, 1:3]]))


def test_in_windows_nothing_is_predicted_where_there_is_no_target() -> None:
    left_to_right, right_to_left = torch.randn(2, 2, 3, DIM)
    left_to_right_targets = torch.tensor([[4, 0, 5], [0, 0, 6]])
    right_to_left_targets = torch.tensor([[0, 7, 0], [0, 0, 0]])
    mask = torch.tensor([[True, True, True], [True, False, True]])
    given = (left_to_right, right_to_left, left_to_right_targets, right_to_left_targets, mask)
    found = Predictions.of_windows(*given)
    states, targets = found.states, found.targets
    assert (found.num_left_to_right, found.fullness) == (3, 5 / 6)
    assert targets.tolist() == [4, 5, 6, 7]
    assert found.rows.tolist() == [0, 0, 1, 2]
    expected = [left_to_right[0, 0], left_to_right[0, 2], left_to_right[1, 2], right_to_left[0, 1]]
    assert torch.equal(states, torch.stack(expected))
    # A full window has ten positions, of which five of twenty are there.
    assert Predictions.of_windows(*given, unroll_steps=10).fullness == 5 / 20


def test_running_text_is_predicted_as_its_sentences_one_after_the_other() -> None:
    begin, end = 7, 8
    encoder = WordEncoder(dim=3, num_words=9, begin_id=begin, end_id=end)
    bilm = BiLm(token_encoder=encoder, cell_size=5, state="carry").eval()
    by_sentence = [
        predict_sentences(
            bilm,
            torch.tensor([words]),
            torch.tensor([words]),
            torch.ones(1, len(words), dtype=torch.bool),
            torch.tensor(begin),
            torch.tensor(end),
        )
        for words in ([2, 3], [4])
    ]
    windows = {
        "words": torch.arange(9),
        "left_to_right": torch.tensor([[begin, 2, 3, end, begin, 4, end]]),
        "left_to_right_targets": torch.tensor([[2, 3, end, 0, 4, end, 0]]),
        "right_to_left": torch.tensor([[end, 3, 2, begin, end, 4, begin]]),
        "right_to_left_targets": torch.tensor([[3, 2, begin, 0, 4, begin, 0]]),
        "mask": torch.ones(1, 7, dtype=torch.bool),
    }
    memory = bilm.new_state_memory("carry")
    running = predict_windows(bilm, windows, memory, torch.tensor(begin), torch.tensor(end))
    states, targets = running.states.split([3, 2, 3, 2]), running.targets.split([3, 2, 3, 2])
    for number, (found, wanted, count, *_) in enumerate(by_sentence):
        assert torch.allclose(found[:count], states[number], atol=1e-6)
        assert torch.equal(wanted[:count], targets[number])
        # Right to left, running text is predicted in the order of reading.
        assert torch.allclose(found[count:].flip(0), states[2 + number], atol=1e-6)
        assert torch.equal(wanted[count:].flip(0), targets[2 + number])


def test_outputs_change_from_position_to_position_of_a_row() -> None:
    # One number an output: by 1 and 2 in a row of three, by 3 in one of two; and nothing else.
    left_to_right = torch.tensor([[1.0, 2.0, 4.0], [5.0, 8.0, 0.0], [9.0, 0.0, 0.0]])
    mask = left_to_right > 0
    right_to_left = 2.0 * left_to_right
    last = LastLayer(left_to_right.unsqueeze(-1), right_to_left.unsqueeze(-1), mask)
    expected = (1 + 4 + 9) * (1 + 4) / 6
    assert last.mean_square_change().item() == pytest.approx(expected)
    # What is rounded is subtracted exactly.
    narrow = (last.left_to_right / 3).bfloat16()
    rounded, wide = LastLayer(narrow, narrow, mask), LastLayer(narrow.float(), narrow.float(), mask)
    assert rounded.mean_square_change() == wide.mean_square_change()
    alone = LastLayer(*(part[:, :1] for part in last))
    assert alone.mean_square_change().item() == 0.0


def test_gradients_of_the_change_are_those_of_finite_differences() -> None:
    outputs = torch.randn(2, 2, 4, DIM).double().requires_grad_()
    mask = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])

    def change(outputs: torch.Tensor) -> torch.Tensor:
        return LastLayer(outputs[0], outputs[1], mask).mean_square_change()

    assert torch.autograd.gradcheck(change, (outputs,))
