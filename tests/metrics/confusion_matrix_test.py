from pathlib import Path

import numpy
import pytest
import torch
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from elmo_scratch.metrics import ConfusionMatrix
from tests.metrics.workers import run_in_two_workers


def test_true_classes_are_in_rows_and_predicted_ones_in_columns() -> None:
    metric = ConfusionMatrix(3)
    metric(predictions=torch.tensor([1, 1, 2]), gold=torch.tensor([0, 1, 0]))
    metric(predictions=torch.tensor([1]), gold=torch.tensor([0]))
    assert metric.counts.tolist() == [[0, 2, 1], [0, 1, 0], [0, 0, 0]]


def test_accuracy_is_the_share_on_the_diagonal() -> None:
    metric = ConfusionMatrix(3)
    metric(torch.tensor([0, 2, 2, 1, 0]), torch.tensor([0, 2, 1, 1, 1]))
    assert metric.accuracy() == pytest.approx(3 / 5)


def test_nothing_seen_is_an_accuracy_of_zero() -> None:
    assert ConfusionMatrix(3).accuracy() == 0.0


def test_a_reset_forgets_everything() -> None:
    metric = ConfusionMatrix(2)
    metric(torch.tensor([0, 1]), torch.tensor([1, 0]))
    metric.reset()
    metric(torch.tensor([1]), torch.tensor([1]))
    assert metric.counts.tolist() == [[0, 0], [0, 1]]
    assert metric.accuracy() == 1.0


def test_counts_and_scores_equal_those_of_scikit_learn() -> None:
    draw = numpy.random.default_rng(11)
    gold = draw.choice(5, size=137, p=[0.4, 0.3, 0.2, 0.1, 0.0])  # one class never comes
    predictions = numpy.where(draw.random(137) < 0.6, gold, draw.integers(5, size=137))
    metric = ConfusionMatrix(5)
    for batch in numpy.split(numpy.arange(137), [2, 19, 90]):
        metric(torch.from_numpy(predictions[batch]), torch.from_numpy(gold[batch]))
    expected = confusion_matrix(gold, predictions, labels=range(5))
    assert metric.counts.tolist() == expected.tolist()
    assert metric.accuracy() == pytest.approx((gold == predictions).mean())
    theirs = precision_recall_fscore_support(gold, predictions, labels=range(5), zero_division=0)
    for our_scores, their_scores in zip(metric.scores()[:3], theirs[:3], strict=True):
        numpy.testing.assert_allclose(our_scores.numpy(), their_scores, atol=1e-12)


def check_worker(rank: int) -> None:
    metric = ConfusionMatrix(2)
    metric(torch.tensor([rank, 1]), torch.tensor([0, 1]))
    assert metric.counts.tolist() == [[1, 1], [0, 2]]


def test_workers_count_together(tmp_path: Path) -> None:
    run_in_two_workers(check_worker, tmp_path)
