from pathlib import Path
from typing import List

import numpy
import pytest
import torch
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from elmo_scratch.metrics import WordPrediction
from tests.metrics.workers import run_in_two_workers


def test_accuracy_looks_at_the_first_and_at_the_five_best_guesses() -> None:
    metric = WordPrediction(11, confusion_words=torch.tensor([2]))
    best = torch.tensor([[2, 3, 4, 5, 6], [2, 3, 4, 5, 6], [2, 3, 4, 5, 6], [7, 8, 9, 10, 2]])
    metric(best, torch.tensor([2, 6, 7, 7]))
    assert metric.top_1_accuracy == 2 / 4
    assert metric.top_5_accuracy == 3 / 4


def test_a_vocabulary_of_fewer_than_five_words_has_fewer_guesses() -> None:
    metric = WordPrediction(3, confusion_words=torch.tensor([2]))
    metric(torch.tensor([[2, 0, 1], [1, 0, 2]]), torch.tensor([2, 0]))
    assert metric.top_1_accuracy == 1 / 2
    assert metric.top_5_accuracy == 1.0


def test_words_that_were_not_chosen_share_the_last_row_and_column() -> None:
    metric = WordPrediction(7, confusion_words=torch.tensor([5, 3]))
    guesses = [5, 3, 6, 1, 6, 4]
    metric(torch.tensor(guesses).unsqueeze(1), torch.tensor([5, 5, 5, 3, 6, 1]))
    # Rows and columns: word 5, word 3, the rest.
    assert metric.confusion.tolist() == [[1, 1, 1], [0, 0, 1], [0, 0, 2]]


def test_no_word_need_be_chosen() -> None:
    metric = WordPrediction(7, confusion_words=torch.tensor([], dtype=torch.long))
    metric(torch.tensor([[4], [2]]), torch.tensor([4, 3]))
    assert metric.confusion.tolist() == [[2]]


def test_macro_scores_are_means_over_the_words_that_were_true_or_guessed() -> None:
    metric = WordPrediction(100, confusion_words=torch.tensor([4]))
    metric(torch.tensor([[4], [4], [9]]), torch.tensor([4, 5, 5]))
    # Word 4: precision 1/2, recall 1, F1 2/3; words 5 and 9: all 0.
    assert list(metric.macro()) == pytest.approx([1 / 6, 1 / 3, 2 / 9])


def test_nothing_seen_is_zero_everywhere() -> None:
    metric = WordPrediction(5, confusion_words=torch.tensor([2, 3]))
    assert (metric.top_1_accuracy, metric.top_5_accuracy) == (0.0, 0.0)
    assert metric.macro() == (0.0, 0.0, 0.0)
    assert metric.confusion.tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 0]]


def test_a_reset_forgets_everything() -> None:
    metric = WordPrediction(5, confusion_words=torch.tensor([2]))
    metric(torch.tensor([[2, 3], [3, 4]]), torch.tensor([3, 2]))
    metric.reset()
    metric(torch.tensor([[2, 3]]), torch.tensor([2]))
    assert (metric.top_1_accuracy, metric.top_5_accuracy) == (1.0, 1.0)
    assert metric.macro() == (1.0, 1.0, 1.0)
    assert metric.confusion.tolist() == [[1, 0], [0, 0]]


def test_uneven_batches_sum_up_to_what_scikit_learn_and_a_plain_count_find() -> None:
    num_words, num_predicted, chosen = 23, 211, [7, 2, 19]
    draw = numpy.random.default_rng(13)
    scores = draw.random((num_predicted, num_words))
    targets = draw.choice(num_words - 2, size=num_predicted)  # two words are never true
    scores[numpy.arange(num_predicted), targets] += 0.5
    best = numpy.argsort(-scores, axis=1)[:, :5]

    metric = WordPrediction(num_words, confusion_words=torch.tensor(chosen))
    for batch in numpy.split(numpy.arange(num_predicted), [1, 60, 67]):
        metric(torch.from_numpy(best[batch]), torch.from_numpy(targets[batch]))

    guesses = best[:, 0]
    in_five = sum(
        target in row for row, target in zip(best.tolist(), targets.tolist(), strict=True)
    )
    assert metric.top_1_accuracy == (guesses == targets).sum() / num_predicted
    assert metric.top_5_accuracy == in_five / num_predicted
    assert 0 < metric.top_1_accuracy < metric.top_5_accuracy < 1
    theirs = precision_recall_fscore_support(targets, guesses, average="macro", zero_division=0)
    assert list(metric.macro()) == pytest.approx(theirs[:3], abs=1e-12)

    def classes(words: numpy.ndarray) -> List[int]:
        return [chosen.index(word) if word in chosen else 3 for word in words.tolist()]

    expected = confusion_matrix(classes(targets), classes(guesses), labels=range(4))
    assert metric.confusion.tolist() == expected.tolist()


def check_worker(rank: int) -> None:
    metric = WordPrediction(5, confusion_words=torch.tensor([2]))
    metric(torch.tensor([[2, 3]]), torch.tensor([2 + rank]))  # rank 1 is right at its second guess
    assert metric.top_1_accuracy == 1 / 2
    assert metric.top_5_accuracy == 1.0
    assert metric.confusion.tolist() == [[1, 0], [1, 0]]
    assert list(metric.macro()) == pytest.approx([1 / 4, 1 / 2, 1 / 3])


def test_workers_count_together(tmp_path: Path) -> None:
    run_in_two_workers(check_worker, tmp_path)
