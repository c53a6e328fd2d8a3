import torch

from elmo_scratch.kernels.cross_entropy import sparse_rows


def test_they_are_the_chosen_rows() -> None:
    table = torch.arange(8.0).view(4, 2)
    assert sparse_rows(table, torch.tensor([1, 3])).tolist() == [[2, 3], [6, 7]]
    assert sparse_rows(torch.arange(4.0), torch.tensor([0, 3])).tolist() == [0, 3]


def test_their_gradient_holds_them_alone() -> None:
    table = torch.zeros(4, 2, requires_grad=True)
    wanted = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    (sparse_rows(table, torch.tensor([1, 3])) * wanted).sum().backward()
    assert table.grad is not None and table.grad.is_sparse
    assert torch.equal(table.grad._values(), wanted)
    assert table.grad.to_dense().tolist() == [[0, 0], [1, 2], [0, 0], [3, 4]]


def test_gradients_add_up() -> None:
    table = torch.zeros(4, requires_grad=True)
    for rows in ([1, 3], [0, 3]):
        sparse_rows(table, torch.tensor(rows)).sum().backward()
    assert table.grad is not None
    assert table.grad.to_dense().tolist() == [1, 1, 0, 2]
