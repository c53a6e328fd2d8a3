import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from elmo_scratch.terminal import Course, course_of_training, result_lines, validation_metric


def language_model(perplexity: float) -> Dict[str, Any]:
    return {
        "perplexity": perplexity,
        "perplexity_left_to_right": 101.72,
        "perplexity_right_to_left": 99.0,
        "top_1_accuracy": 0.25,
        "top_5_accuracy": 0.5,
        "confusion": [[1] * 21] * 21,
        "confusion_words": ["the"] * 21,
        "loss": 4.6,
    }


def classifier(names: List[str], count: int) -> Dict[str, Any]:
    scores = {f"{kind}_{name}": 0.5 for kind in ("precision", "recall", "f1") for name in [*names]}
    return {
        "accuracy": 0.912,
        "macro_precision": 0.25,
        "macro_recall": 0.75,
        "macro_f1": 0.375,
        **scores,
        "confusion": [[count] * len(names)] * len(names),
        "confusion_classes": names,
    }


def test_a_language_model_tells_its_perplexities_and_no_matrix() -> None:
    epochs = [language_model(perplexity) for perplexity in (1000.0, 300.0, 100.0)]
    assert result_lines(language_model(100.04), epochs) == [
        "perplexity 100.0  █▄▁  over 3 epochs",
        "  left to right 101.7, right to left 99.0",
        "  right word guessed 25.0%, among five guesses 50.0%",
    ]


def test_a_classifier_tells_each_class_and_what_its_texts_were_taken_for() -> None:
    names = ["World", "Sports", "Business", "Sci/Tech"]
    assert result_lines(classifier(names, 1900)) == [
        "accuracy 91.2%",
        "                                        taken for",
        "               precis.  recall      F1      World   Sports Business Sci/Tech",
        "World            0.500   0.500   0.500       1900     1900     1900     1900",
        "Sports           0.500   0.500   0.500       1900     1900     1900     1900",
        "Business         0.500   0.500   0.500       1900     1900     1900     1900",
        "Sci/Tech         0.500   0.500   0.500       1900     1900     1900     1900",
        "mean             0.250   0.750   0.375",
    ]


def test_lines_are_few_and_fit_a_terminal_whatever_classes_are_called() -> None:
    for names in (
        [f"a class\nof {number} with a name" for number in range(12)],
        [f"c{number}" for number in range(4_000)],
        ["one"],
    ):
        lines = result_lines(classifier(names, 1_234_567))
        assert len(lines) <= 15
        assert all(len(line) <= 78 and line.isprintable() for line in lines)


def test_other_models_tell_their_numbers() -> None:
    metrics = {"f1": 0.51234, "loss": 2.0, "counts": [1, 2]}
    metrics.update(worker_0_memory_MB=600.0, tokens_per_second=99.0)
    assert result_lines(metrics) == ["f1    0.5123", "loss  2"]
    many = result_lines({f"metric {number}": 1.0 for number in range(30)})
    assert len(many) == 11 and many[-1] == "and 20 more"


def test_what_chose_the_best_epoch_comes_first_with_its_course() -> None:
    epochs = [{"accuracy": 0.9, "f1-measure-overall": f1, "loss": 1.0} for f1 in (0.1, 0.2, 0.5)]
    assert result_lines(epochs[-1], epochs, "f1-measure-overall") == [
        "f1-measure-overall  0.5  ▁▃█  over 3 epochs",
        "accuracy            90.0%",
        "loss                1",
    ]


@pytest.mark.parametrize(
    "named, metric",
    [
        ("+f1-measure-overall", "+f1-measure-overall"),
        (["-perplexity", "+accuracy"], "-perplexity"),
        ([], "-loss"),
        (None, "-loss"),
        (3, "-loss"),
    ],
)
def test_of_several_metrics_the_first_chooses_the_best_epoch(named: Any, metric: str) -> None:
    assert validation_metric({"trainer": {"validation_metric": named}}) == metric
    assert validation_metric({}) == "-loss"


def test_the_course_of_a_training_is_that_of_the_validation_data_if_there_are_any(
    tmp_path: Path,
) -> None:
    for epoch in (0, 1, 10):
        metrics = {"training_loss": 9.0, "validation_loss": float(epoch)}
        (tmp_path / f"metrics_epoch_{epoch}.json").write_text(json.dumps(metrics))
    last = {"best_epoch": 1, "training_loss": 9.0, "validation_loss": 10.0}
    (tmp_path / "metrics.json").write_text(json.dumps({**last, "best_validation_loss": 1.0}))
    losses = [{"loss": 0.0}, {"loss": 1.0}, {"loss": 10.0}]
    assert course_of_training(tmp_path) == Course({"loss": 1.0}, losses, 1, "validation")
    (tmp_path / "metrics.json").write_text(json.dumps({"best_epoch": 1, "training_loss": 9.0}))
    assert course_of_training(tmp_path).best == {"loss": 9.0}


def test_a_training_recovered_after_its_end_tells_its_last_epoch(tmp_path: Path) -> None:
    """There was nothing left to train, so that AllenNLP has written no numbers."""
    (tmp_path / "metrics.json").write_text(json.dumps({"best_epoch": None}))
    for epoch in (0, 1):
        (tmp_path / f"metrics_epoch_{epoch}.json").write_text(json.dumps({"training_loss": epoch}))
    assert course_of_training(tmp_path) == Course(
        {"loss": 1}, [{"loss": 0}, {"loss": 1}], 1, "training"
    )
    last = {"best_epoch": 0, "best_validation_loss": 3.0}
    (tmp_path / "metrics.json").write_text(json.dumps(last))
    assert course_of_training(tmp_path)[2:] == (0, "validation")
