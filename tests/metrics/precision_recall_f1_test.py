import numpy
import pytest
import torch
from sklearn.metrics import precision_recall_fscore_support

from elmo_scratch.metrics import PrecisionRecallF1


def test_scores_follow_the_definitions() -> None:
    scores = PrecisionRecallF1.from_counts(
        hits=torch.tensor([2, 0, 0, 0]),
        predicted=torch.tensor([5, 3, 0, 0]),
        gold=torch.tensor([3, 0, 5, 0]),
    )
    assert scores.precision.tolist() == pytest.approx([2 / 5, 0, 0, 0])
    assert scores.recall.tolist() == pytest.approx([2 / 3, 0, 0, 0])
    assert scores.f1.tolist() == pytest.approx([1 / 2, 0, 0, 0])  # 2 * 2 / (5 + 3)
    assert scores.seen.tolist() == [True, True, True, False]


def test_macro_scores_are_means_over_the_classes_that_were_seen() -> None:
    macro = PrecisionRecallF1.from_counts(
        hits=torch.tensor([2, 0, 0, 0]),
        predicted=torch.tensor([5, 3, 0, 0]),
        gold=torch.tensor([3, 0, 5, 0]),
    ).macro()
    assert macro.precision == pytest.approx(2 / 15)
    assert macro.recall == pytest.approx(2 / 9)
    assert macro.f1 == pytest.approx(1 / 6)


def test_macro_scores_are_zero_where_no_class_was_seen() -> None:
    nothing = torch.zeros(3, dtype=torch.long)
    assert PrecisionRecallF1.from_counts(nothing, nothing, nothing).macro() == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("num_classes, num_examples", [(3, 101), (29, 53), (211, 97)])
def test_scores_equal_those_of_scikit_learn(num_classes: int, num_examples: int) -> None:
    draw = numpy.random.default_rng(7)
    gold = draw.integers(num_classes, size=num_examples)
    predicted = numpy.where(
        draw.random(num_examples) < 0.5, gold, draw.integers(num_classes, size=num_examples)
    )
    ours = PrecisionRecallF1.from_counts(
        *(
            torch.from_numpy(numpy.bincount(ids, minlength=num_classes))
            for ids in (gold[gold == predicted], predicted, gold)
        )
    )
    theirs = precision_recall_fscore_support(
        gold, predicted, labels=range(num_classes), zero_division=0
    )
    for our_scores, their_scores in zip(ours[:3], theirs[:3], strict=True):
        numpy.testing.assert_allclose(our_scores.numpy(), their_scores, atol=1e-12)
    their_macro = precision_recall_fscore_support(gold, predicted, average="macro", zero_division=0)
    assert list(ours.macro()) == pytest.approx(their_macro[:3], abs=1e-12)
