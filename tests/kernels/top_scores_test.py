import pytest
import torch

from elmo_scratch.kernels.cross_entropy import GROUP_SIZE, top_scores


@pytest.mark.parametrize("columns", [5, 32, 6 * GROUP_SIZE, 6 * GROUP_SIZE + 1, 1000, 4999])
def test_they_are_those_of_sorting_all(columns: int) -> None:
    torch.manual_seed(13)
    scores = torch.randn(50, columns)
    top, expected = top_scores(scores, 5), scores.topk(5)
    assert torch.equal(top.values, expected.values)
    assert torch.equal(top.indices, expected.indices)


@pytest.mark.parametrize("first", [0, 62, 640 - 5, 640 - 3, 645 - 5])
def test_the_highest_may_be_of_one_place(first: int) -> None:
    # 10 groups of 64, and 5 scores beyond them.
    scores = torch.zeros(1, 645)
    scores[0, first : first + 5] = torch.arange(5.0, 0.0, -1.0)
    assert top_scores(scores, 5).indices.tolist() == [list(range(first, first + 5))]


def test_the_highest_may_be_of_as_many_groups() -> None:
    scores = torch.zeros(1, 640)
    scores[0, 3::128] = torch.tensor([2.0, 5.0, 1.0, 4.0, 3.0])
    assert top_scores(scores, 5).indices.tolist() == [[131, 387, 515, 3, 259]]


def test_equal_scores_come_once_each() -> None:
    indices = top_scores(torch.ones(3, 1000), 5).indices
    assert [len(set(row)) for row in indices.tolist()] == [5, 5, 5]


def test_scores_that_rule_a_word_out_come_last() -> None:
    scores = torch.full((1, 1000), -torch.inf)
    scores[0, 7] = -1e4
    assert top_scores(scores, 1).indices.tolist() == [[7]]
