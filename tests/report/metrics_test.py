import math
from pathlib import Path
from typing import Any, List

import pytest

from elmo_scratch.report.metrics import ClassScores, Confusion, Metrics, read_metrics, total_seconds
from tests.report.run_folders import classifier_metrics, write_json


def read(folder: Path, problems: List[str], **content: Any) -> Metrics:
    write_json(folder / "metrics.json", content)
    return read_metrics(folder / "metrics.json", problems)


def test_metrics_are_read(tmp_path: Path) -> None:
    problems: List[str] = []
    metrics = read(tmp_path, problems, **classifier_metrics([0.5, 0.25]))
    assert problems == []
    assert metrics.of("best_validation") == {"accuracy": 0.5, "loss": 0.8}
    assert metrics.seconds == 20.5
    assert metrics.confusions == {"best_validation": Confusion(("cats", "dogs"), ((3, 1), (2, 5)))}


def test_the_scores_of_classes_follow_from_the_matrix() -> None:
    cats, dogs = Confusion(("cats", "dogs"), ((3, 1), (2, 5))).class_scores()
    assert cats == ClassScores("cats", 3 / 5, 3 / 4, 2 * 3 / 9, 4)
    assert dogs == ClassScores("dogs", 5 / 6, 5 / 7, 2 * 5 / 13, 7)


def test_measured_scores_of_classes_are_taken_as_they_are() -> None:
    names = ["precision-PER", "recall-PER", "f1-measure-PER", "precision-LOC", "f1-measure-overall"]
    numbers = {f"validation_{name}": place / 8 for place, name in enumerate(names)}
    (person,) = Metrics(numbers, {}).class_scores("validation")
    assert person == ClassScores("PER", 0.0, 1 / 8, 2 / 8)


def test_the_most_confused_come_first() -> None:
    confusion = Confusion(("a", "b", "c"), ((5, 1, 0), (3, 0, 2), (0, 0, 0)))
    assert confusion.most_confused(2) == [("b", "a", 3, 3 / 5), ("b", "c", 2, 2 / 5)]


def test_the_last_classes_of_many_become_one() -> None:
    confusion = Confusion(("a", "b", "c"), ((1, 2, 3), (4, 5, 6), (7, 8, 9)))
    assert confusion.merged(2) == Confusion(("a", "(the rest)"), ((1, 5), (11, 28)))
    assert confusion.merged(3) == confusion


@pytest.mark.parametrize("value", [[0.5], "0.5", None, True, {"a": 1}])
def test_what_is_no_number_is_left_out(tmp_path: Path, value: Any) -> None:
    problems: List[str] = []
    metrics = read(tmp_path, problems, validation_loss=value, training_loss=1)
    assert metrics.numbers == {"training_loss": 1.0}
    assert problems == ["metrics.json: validation_loss is left out: it is no number"]


def test_nan_and_infinity_are_numbers(tmp_path: Path) -> None:
    metrics = read(tmp_path, [], a=math.nan, b=math.inf, c=-(10**400))
    assert math.isnan(metrics.numbers["a"])
    assert (metrics.numbers["b"], metrics.numbers["c"]) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    "counts, names",
    [
        ([[1, 2]], ["a"]),
        ([[1]], ["a", "b"]),
        ([[1.5]], ["a"]),
        ([[True]], ["a"]),
        ([[-1]], ["a"]),
        ([[2**60]], ["a"]),
        ([[1]], [1]),
        ([[1]], None),
        ([], []),
        ("counts", "names"),
    ],
)
def test_what_is_no_matrix_is_left_out(tmp_path: Path, counts: Any, names: Any) -> None:
    problems: List[str] = []
    content = {"test_confusion": counts, "test_confusion_words": names}
    assert read(tmp_path, problems, **content).confusions == {}
    assert problems == [
        "metrics.json: test_confusion is left out: expected a square of counts with a name for "
        "each row"
    ]


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("0:08:42.473433", 522.473433),
        ("0:00:03", 3.0),
        ("1 day, 2:00:00.5", 93600.5),
        ("a day", None),
        (7, None),
    ],
)
def test_time_spans_are_read(tmp_path: Path, text: Any, seconds: Any) -> None:
    assert read(tmp_path, [], training_duration=text).seconds == seconds


def test_the_time_goes_on_after_a_recovery() -> None:
    assert total_seconds([10.0, 20.0, 30.0]) == 30.0
    assert total_seconds([10.0, 20.0, 9.0, 18.0]) == 38.0
    assert total_seconds([]) == 0.0
