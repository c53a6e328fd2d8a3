import torch

from elmo_scratch.kernels.lstm.cuda_graphs import PaddedLayout, grid_of

CPU = torch.device("cpu")
SIZES = (4, 4, 3, 3, 3, 1, 1)
ROWS = torch.tensor([row for active in SIZES for row in range(active)]).unsqueeze(1)


def test_each_position_is_read_once_and_stays_in_its_row() -> None:
    grid = PaddedLayout.of(SIZES, 3, 5, CPU)
    laid = grid.laid(ROWS + 1)
    assert laid.shape == (3, 15, 1)
    steps = laid.view(9, 5)
    assert torch.equal(steps, (torch.arange(5) + 1) * (steps > 0))
    assert (steps > 0).sum(dim=1).tolist() == [*SIZES, 0, 0]
    assert torch.equal(grid.picked(laid) - 1, ROWS)


def test_it_knows_where_sentences_end() -> None:
    grid = PaddedLayout.of(SIZES, 3, 5, CPU)
    assert grid.last.tolist() == [6 * 5 + 0, 4 * 5 + 1, 4 * 5 + 2, 1 * 5 + 3]
    assert grid.picked_last(grid.laid(ROWS)).flatten().tolist() == [0, 1, 2, 3]


def test_what_fits_is_left_as_it_lies() -> None:
    grid, vectors = PaddedLayout.of((3,) * 4, 2, 3, CPU), torch.randn(2 * 2 * 3, 7)
    assert (grid.num_pieces, grid.places) == (2, None)
    laid = grid.laid(vectors)
    assert laid.shape == (2, 6, 7)
    assert laid.data_ptr() == grid.picked(laid).data_ptr() == vectors.data_ptr()
    assert torch.equal(grid.picked(laid), vectors)


def test_grids_of_the_last_batches_are_kept() -> None:
    assert grid_of((2, 1), 3, 5, CPU) is grid_of((2, 1), 3, 5, CPU)
    assert grid_of((2, 1), 3, 5, CPU) is not grid_of((2, 1), 3, 5, CPU, stream=1)
