import torch

from elmo_scratch.modules import BiLm, Predictions, predict_sentences, predict_windows
from elmo_scratch.modules.token_encoders import WordEncoder

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
    running = predict_windows(bilm, windows, bilm.new_state_memory("carry"))
    states, targets = running.states.split([3, 2, 3, 2]), running.targets.split([3, 2, 3, 2])
    for number, (found, wanted, count, _) in enumerate(by_sentence):
        assert torch.allclose(found[:count], states[number], atol=1e-6)
        assert torch.equal(wanted[:count], targets[number])
        # Right to left, running text is predicted in the order of reading.
        assert torch.allclose(found[count:].flip(0), states[2 + number], atol=1e-6)
        assert torch.equal(wanted[count:].flip(0), targets[2 + number])
