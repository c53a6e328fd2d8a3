import torch

from elmo_scratch.modules.lstms.replay.pieces import pieces_of

CPU = torch.device("cpu")


def test_each_position_is_read_once_and_stays_in_its_row() -> None:
    sizes = (4, 4, 3, 3, 3, 1, 1)
    rows = torch.tensor([row for active in sizes for row in range(active)]).unsqueeze(1)
    found = []
    for piece in pieces_of(sizes, 3, 5, CPU):
        laid = piece.laid(rows + 1).view(3, 5)
        assert torch.equal(laid, (torch.arange(5) + 1) * (laid > 0))
        found.append(piece.picked(laid.view(15, 1)) - 1)
    assert torch.equal(torch.cat(found), rows)


def test_it_knows_where_sentences_end() -> None:
    first, second, third = pieces_of((4, 4, 3, 3, 3, 1, 1), 3, 5, CPU)
    assert first.last.tolist() == [1 * 5 + 3]
    assert second.last.tolist() == [1 * 5 + 1, 1 * 5 + 2]
    assert third.last.tolist() == [0]


def test_it_knows_the_step_before() -> None:
    pieces = pieces_of((4, 4, 3, 3, 3, 1, 1), 3, 5, CPU)
    assert [piece.before for piece in pieces] == [slice(0, 0), slice(8, 11), slice(17, 18)]


def test_what_fits_is_left_as_it_lies() -> None:
    vectors = torch.randn(2 * 2 * 3, 7)
    for piece, own in zip(pieces_of((3,) * 4, 2, 3, CPU), vectors.split(6), strict=True):
        assert piece.places is None
        assert piece.laid(vectors).data_ptr() == own.data_ptr()
        assert piece.picked(own) is own


def test_pieces_of_the_last_batches_are_kept() -> None:
    assert pieces_of((2, 1), 3, 5, CPU) is pieces_of((2, 1), 3, 5, CPU)
