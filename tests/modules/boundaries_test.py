import torch

from elmo_scratch.modules.sequences import add_boundaries, remove_boundaries

BEGIN, END = torch.tensor(90), torch.tensor(91)


def test_marks_stand_before_and_after_each_sentence() -> None:
    ids = torch.tensor([[5, 6, 7], [8, 0, 0]])
    bounded = add_boundaries(ids, ids > 0, BEGIN, END)
    assert bounded.ids.tolist() == [[90, 5, 6, 7, 91], [90, 8, 91, 0, 0]]
    assert bounded.mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2]


def test_an_empty_sentence_becomes_the_two_marks() -> None:
    ids = torch.tensor([[5, 6, 7], [0, 0, 0]])
    bounded = add_boundaries(ids, ids > 0, BEGIN, END)
    assert bounded.ids[1].tolist() == [90, 91, 0, 0, 0]
    assert bounded.mask[1].tolist() == [True, True, False, False, False]


def test_a_batch_without_a_token_becomes_the_two_marks() -> None:
    bounded = add_boundaries(torch.zeros(2, 0).long(), torch.zeros(2, 0).bool(), BEGIN, END)
    assert bounded.ids.tolist() == [[90, 91], [90, 91]]
    assert bounded.mask.all()


def test_what_lies_under_the_padding_is_cleared() -> None:
    ids = torch.tensor([[5, 6, 7], [8, 66, 77]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    assert add_boundaries(ids, mask, BEGIN, END).ids[1].tolist() == [90, 8, 91, 0, 0]


def test_the_ids_that_came_are_left_as_they_are() -> None:
    ids = torch.tensor([[5, 6, 7], [8, 66, 77]])
    add_boundaries(ids, torch.tensor([[True, True, True], [True, False, False]]), BEGIN, END)
    assert ids.tolist() == [[5, 6, 7], [8, 66, 77]]


def test_marks_of_characters_fill_a_position_of_their_own() -> None:
    ids = torch.tensor([[[1, 2], [3, 4], [5, 6]], [[7, 8], [0, 0], [0, 0]]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    bounded = add_boundaries(ids, mask, torch.tensor([90, 80]), torch.tensor([91, 81]))
    assert bounded.ids.tolist() == [
        [[90, 80], [1, 2], [3, 4], [5, 6], [91, 81]],
        [[90, 80], [7, 8], [91, 81], [0, 0], [0, 0]],
    ]
    assert bounded.mask.tolist() == [[True] * 5, [True] * 3 + [False] * 2]


def test_removing_boundaries_brings_each_token_back_to_its_place() -> None:
    ids = torch.tensor([[5, 6, 7], [8, 0, 0]])
    mask = ids > 0
    positions = add_boundaries(ids, mask, BEGIN, END).ids.unsqueeze(-1)  # (batch, positions, 1)
    tokens = remove_boundaries(positions).squeeze(-1)
    assert tokens[mask].tolist() == [5, 6, 7, 8]


def test_boundaries_of_several_layers_are_removed_at_once() -> None:
    positions = torch.arange(2 * 3 * 5 * 7).view(2, 3, 5, 7)  # (layers, batch, positions, width)
    assert remove_boundaries(positions).tolist() == positions[:, :, 1:4].tolist()
