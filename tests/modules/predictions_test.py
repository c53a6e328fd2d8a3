import torch

from elmo_scratch.models.language_model import Predictions

DIM = 2


def test_in_sentences_each_word_is_predicted_from_both_sides() -> None:
    # Two sentences of two words and of one, between the marks 8 and 9.
    words = torch.tensor([[8, 1, 2, 9], [8, 3, 9, 0]])
    mask = words > 0
    top = torch.arange(2 * 4 * 2 * DIM).float().view(2, 4, 2 * DIM)
    states, targets, num_left_to_right, fullness = Predictions.of_sentences(top, words, mask)
    assert (num_left_to_right, fullness) == (5, 1.0)
    assert targets.tolist() == [1, 2, 9, 3, 9, 8, 1, 2, 8, 3]
    left_to_right, right_to_left = top[..., :DIM], top[..., DIM:]
    assert torch.equal(states[:5], torch.cat([left_to_right[0, :3], left_to_right[1, :2]]))
    assert torch.equal(states[5:], torch.cat([right_to_left[0, 1:], right_to_left[1, 1:3]]))


def test_in_windows_nothing_is_predicted_where_there_is_no_target() -> None:
    left_to_right, right_to_left = torch.randn(2, 2, 3, DIM)
    left_to_right_targets = torch.tensor([[4, 0, 5], [0, 0, 6]])
    right_to_left_targets = torch.tensor([[0, 7, 0], [0, 0, 0]])
    mask = torch.tensor([[True, True, True], [True, False, True]])
    states, targets, num_left_to_right, fullness = Predictions.of_windows(
        left_to_right, right_to_left, left_to_right_targets, right_to_left_targets, mask
    )
    assert (num_left_to_right, fullness) == (3, 5 / 6)
    assert targets.tolist() == [4, 5, 6, 7]
    expected = [left_to_right[0, 0], left_to_right[0, 2], left_to_right[1, 2], right_to_left[0, 1]]
    assert torch.equal(states, torch.stack(expected))
