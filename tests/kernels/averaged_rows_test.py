from pathlib import Path

import torch

from elmo_scratch.kernels.cross_entropy import averaged_rows, rows_of_all_workers
from tests.metrics.workers import run_in_two_workers


def check_rows(rank: int) -> None:
    for chosen, wanted in [
        (([3, 0], [1, 3, 3]), [0, 1, 3]),
        (([2], []), [2]),
        (([], []), []),
    ]:
        of_all = rows_of_all_workers(torch.tensor(chosen[rank], dtype=torch.long), num_rows=5)
        assert of_all.tolist() == wanted


def test_workers_agree_on_the_rows_of_all(tmp_path: Path) -> None:
    run_in_two_workers(check_rows, tmp_path)


def check_gradients(rank: int) -> None:
    rows = torch.tensor(([0, 3], [1, 3])[rank])
    of_all = rows_of_all_workers(rows, num_rows=4)
    table = torch.arange(8.0).view(4, 2).requires_grad_()
    numbers = torch.arange(4.0, requires_grad=True)
    taken, taken_numbers = averaged_rows(table, rows, of_all), averaged_rows(numbers, rows, of_all)
    assert taken.tolist() == table[rows].tolist() and taken_numbers.tolist() == rows.tolist()
    # Rows 0 to 3 are multiplied by 2, -, -, 4 in the first worker, by -, 6, -, 8 in the second.
    factors = torch.tensor([[2.0, 4.0], [6.0, 8.0]][rank])
    ((taken * factors.unsqueeze(1)).sum() + (taken_numbers * factors).sum()).backward()
    for gradient in (table.grad, numbers.grad):
        assert gradient is not None and gradient.is_sparse
        assert gradient.coalesce().indices().tolist() == [[0, 1, 3]]
    assert table.grad.to_dense().tolist() == [[1, 1], [3, 3], [0, 0], [6, 6]]
    assert numbers.grad.to_dense().tolist() == [1, 3, 0, 6]


def test_gradients_are_means_over_the_workers(tmp_path: Path) -> None:
    run_in_two_workers(check_gradients, tmp_path)


def check_a_worker_without_rows(rank: int) -> None:
    rows = torch.tensor([1, 2] if rank == 0 else [], dtype=torch.long)
    numbers = torch.arange(4.0, requires_grad=True)
    taken = averaged_rows(numbers, rows, rows_of_all_workers(rows, num_rows=4))
    assert taken.tolist() == rows.tolist()
    taken.sum().backward()
    assert numbers.grad is not None
    assert numbers.grad.to_dense().tolist() == [0, 0.5, 0.5, 0]


def test_a_worker_may_have_no_rows(tmp_path: Path) -> None:
    run_in_two_workers(check_a_worker_without_rows, tmp_path)
