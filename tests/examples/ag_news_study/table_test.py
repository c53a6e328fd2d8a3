import json
from types import ModuleType
from typing import Any, Dict, Sequence

import pytest
from allennlp.common import Params

from tests import PROJECT_ROOT
from tests.examples.ag_news_study import STUDY, trained


def row_of(
    modules: Dict[str, ModuleType],
    name: str,
    accuracies: Sequence[float],
    part: str = "mixes",
) -> Any:
    trainings = [
        trained(modules, f"{name} {seed}", seed, accuracy, [[1, 0], [2, seed]])
        for seed, accuracy in enumerate(accuracies)
    ]
    return modules["results"].Row(part, name, trainings)


def test_the_table_says_what_may_be_the_best(modules: Dict[str, ModuleType]) -> None:
    rows = [
        row_of(modules, "worse", [0.80, 0.81, 0.80, 0.81]),
        row_of(modules, "best", [0.89, 0.91, 0.90, 0.92]),
        row_of(modules, "like it", [0.89, 0.90, 0.90, 0.91]),
        row_of(modules, "alone", [0.89]),
        row_of(modules, "far", [0.85]),
    ]
    heading, _, *lines = modules["table"].markdown(rows).splitlines()
    assert heading == "### One classifier over different vectors, of descriptions"
    confused, lines = lines[8:12], lines[2:7]
    names = [line.split(" | ")[0].strip("| ") for line in lines]
    assert names == ["best", "like it", "alone", "far", "worse"]
    assert "| 4 | 90.50% ± 1.29 | 90.00% | 0.905 ± 0.013 |" in lines[0]
    assert "0.25, 0.75 | 60 s |" in lines[0]
    assert "90.00% ± 0.82 ≈" in lines[1]
    assert "| 1 | 89.00% ≈ | 88.50% | 0.890 |" in lines[2]
    assert not any("≈" in lines[place] for place in (0, 3, 4))
    assert confused == [
        "| best: true class | as dull | as fine |",
        "|---|---:|---:|",
        "| dull | 4 | 0 |",
        "| fine | 8 | 6 |",
    ]


def test_each_part_has_a_table_of_its_own(modules: Dict[str, ModuleType]) -> None:
    rows = [
        row_of(modules, "a", [0.92], "titles"),
        row_of(modules, "b", [0.91], "descriptions"),
        row_of(modules, "c", [0.90], "titles"),
    ]
    lines = modules["table"].markdown(rows).splitlines()
    marks = [line.split(" | ")[0] for line in lines if line.startswith(("###", "| "))]
    assert marks == [
        "### The best classifiers, of descriptions",
        *("| vectors, mix", "| b", "| b: true class", "| dull", "| fine"),
        "### The best classifiers, of titles and descriptions",
        *("| vectors, mix", "| a", "| c", "| a: true class", "| dull", "| fine"),
    ]
    assert not any("≈" in line for line in lines[:-1])


@pytest.mark.exhaustive
def test_the_tables_that_are_told_are_those_of_the_numbers(modules: Dict[str, ModuleType]) -> None:
    described = json.loads((STUDY / "study.json").read_text("utf-8"))
    rows = [
        modules["results"].Row(
            row["part"],
            row["name"],
            [
                modules["training"].Training.from_params(Params(training))
                for training in row["trainings"]
            ],
        )
        for row in described
    ]
    assert (STUDY / "study.md").read_text("utf-8") == modules["table"].markdown(rows)
    page = (PROJECT_ROOT / "docs/results.md").read_text("utf-8")
    for row in rows:
        if row.part != "mixes":
            told = f"| {100 * row.mean('accuracy'):.2f} %"
            if len(row.trainings) > 1:
                told += f" ± {100 * row.deviation('accuracy'):.2f}"
            assert f"{told} |" in page, f"{row.part}: {row.name}"
