import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Dict

import pytest
from allennlp.common.checks import ConfigurationError

from tests.examples.ag_news_study import trained


def row_of(modules: Dict[str, ModuleType]) -> Any:
    trainings = [
        trained(modules, f"sha256:{seed}", seed, accuracy, [[1, 0], [2, seed]])
        for seed, accuracy in enumerate((0.8, 0.9))
    ]
    return modules["results"].Row("mixes", "words, top", trainings)


def test_trainings_are_read_as_they_were_written(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    row = row_of(modules)
    bag = modules["training"].Training("", 0, row.trainings[0].scores, 1.0, ["a"], [[1]], [])
    path = tmp_path / "study.json"
    modules["results_file"].write_results(
        [row, modules["results"].Row("mixes", "TF-IDF, linear SVM", [bag])], path
    )
    # What is trained anew each time is not among them.
    assert modules["results_file"].read_trainings(path) == {
        f"sha256:{seed}": training for seed, training in enumerate(row.trainings)
    }
    described = json.loads(path.read_text("utf-8"))[0]
    assert (described["part"], described["name"]) == ("mixes", "words, top")
    assert described["means"]["macro_f1"] == pytest.approx(0.85)
    assert described["deviations"]["accuracy"] == pytest.approx(0.0707, abs=1e-4)


@pytest.mark.parametrize(
    "changed, told",
    [
        ('{"a": 1', "Expecting"),
        ("[1]", "not subscriptable"),
        ('[{"name": "a"}]', "'trainings'"),
        ('[{"trainings": [1]}]', "a training is no object"),
        ('[{"trainings": [{"seed": 1}]}]', 'key "settings" is required'),
    ],
)
def test_another_file_is_an_error(
    changed: str, told: str, modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    path = tmp_path / "study.json"
    path.write_text(changed, encoding="utf-8")
    expected = f"{re.escape(str(path))}: expected the `study.json` of a study, .*{told}"
    with pytest.raises(ConfigurationError, match=expected):
        modules["results_file"].read_trainings(path)


@pytest.mark.parametrize(
    "name, value", [("scores", {"accuracy": 1.0}), ("confusion", ["a"]), ("seconds", "a")]
)
def test_a_damaged_training_is_an_error(
    name: str, value: Any, modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    path = tmp_path / "study.json"
    modules["results_file"].write_results([row_of(modules)], path)
    rows = json.loads(path.read_text("utf-8"))
    rows[0]["trainings"][1][name] = value
    path.write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(ConfigurationError, match="but it is none"):
        modules["results_file"].read_trainings(path)


def test_a_file_that_is_not_there_is_an_error(
    modules: Dict[str, ModuleType], tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="study.json: No such file"):
        modules["results_file"].read_trainings(tmp_path / "study.json")
