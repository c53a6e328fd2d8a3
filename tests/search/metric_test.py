import json
from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.search.sweep import Metric


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "metrics.json"
    metrics = {
        "best_validation_accuracy": 0.75,
        "training_loss": 0.5,
        "best_validation_confusion": [[1, 2]],
        "test_f1": 1,
    }
    file.write_text(json.dumps(metrics), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("name", "value", "is_of_every_epoch"),
    [
        ("validation/accuracy", 0.75, True),
        ("train/loss", 0.5, True),
        ("best_validation_accuracy", 0.75, False),
        ("test_f1", 1, False),
    ],
)
def test_a_metric_has_its_name_in_weights_and_biases_or_in_the_file(
    name: str, value: float, is_of_every_epoch: bool, file: Path
) -> None:
    metric = Metric(name, True)
    assert metric.of(file) == value
    assert metric.is_of_every_epoch == is_of_every_epoch


@pytest.mark.parametrize(
    "name", ["validation/acuracy", "validation/confusion", "accuracy", "train/"]
)
def test_a_missing_metric_is_an_error_that_lists_those_there_are(name: str, file: Path) -> None:
    with pytest.raises(ConfigurationError) as error:
        Metric(name, True).of(file)
    assert f"the metric of the search is `{name}`" in error.value.message
    there_are = "there are: best_validation_accuracy, test_f1, training_loss"
    assert error.value.message.endswith(there_are)


def test_it_may_be_missing_as_long_as_nothing_was_validated(file: Path) -> None:
    metric = Metric("validation/accuracy", True)
    assert metric.so_far(file) == 0.75
    file.write_text('{"best_epoch": null, "training_loss": 0.5}', encoding="utf-8")
    assert metric.so_far(file) is None
    assert Metric("train/loss", False).so_far(file) == 0.5
    file.write_text('{"best_epoch": 1, "training_loss": 0.5}', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="has no number `best_validation_accuracy`"):
        metric.so_far(file)
