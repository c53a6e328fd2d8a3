"""`learning_curve.py`: what it draws, what reads what, and how it is told."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Dict, List

import pytest

from elmo_scratch.data.readers import ag_news_rows
from tests.examples.ag_news_study import DEV, STUDY, TRAIN
from tests.examples.run_program import run_program

PROGRAM = STUDY / "learning_curve.py"


@pytest.fixture
def curve(modules: Dict[str, ModuleType]) -> ModuleType:
    return modules["learning_curve"]


def test_a_draw_is_balanced_and_part_of_a_larger_one(curve: ModuleType) -> None:
    rows = list(ag_news_rows(TRAIN))
    small, large = (curve.labelled(rows, size, 3) for size in (10, 50))
    assert set(small) < set(large)
    assert sorted(Counter(row.label for row in small).values()) == [2, 2, 3, 3]
    assert large == sorted(large, key=rows.index)
    assert curve.labelled(rows, 50, 3) == large != curve.labelled(rows, 50, 4)


def test_a_class_that_is_used_up_gives_way_to_the_others(curve: ModuleType) -> None:
    rows = list(ag_news_rows(TRAIN))
    label = rows[0].label
    few = [rows[0], *(row for row in rows if row.label != label)]
    drawn = curve.labelled(few, 40, 0)
    assert Counter(row.label for row in drawn)[label] == 1
    assert sorted(Counter(row.label for row in drawn).values()) == [1, 13, 13, 13]
    assert curve.labelled(few, 10**6, 0) == few


def test_few_texts_are_read_more_often(curve: ModuleType) -> None:
    assert [curve.num_steps(size) for size in (100, 2400, 3200, 3201)] == [300, 300, 400, 401]


def test_vectors_read_all_texts_and_classifiers_their_own(
    curve: ModuleType, tmp_path: Path
) -> None:
    for name in ("train", "choosing", "measured", "few"):
        (tmp_path / f"{name}.csv").write_bytes(DEV.read_bytes())
    draws = {50: {0: tmp_path / "few.csv"}, 800: {0: tmp_path / "train.csv"}}
    tasks = curve.curve_tasks(tmp_path, draws, {})
    read = {task.name: json.dumps([task.command, task.variables]) for task in tasks}
    made = {task.name for task in tasks if not task.row}
    assert made == {"word2vec", "svd", "words from word2vec", "untrained words"}
    assert not any("few.csv" in read[name] or "measured.csv" in read[name] for name in made)
    assert [task.row for task in tasks if task.part == "50 labels"] == list(curve.ROWS)
    for task in tasks:
        if task.row:
            assert set(task.needs) < made
            assert task.variables["AG_NEWS_DEV"] == str(tmp_path / "measured.csv")
            trained = "few.csv" if task.part == "50 labels" else "train.csv"
            assert task.variables["AG_NEWS_TRAIN"] == str(tmp_path / trained)
            # It is measured at its end alone: nothing is chosen.
            assert task.settings["config"]["trainer"]["num_epochs"] == 1
            assert task.settings["config"]["data_loader"]["batches_per_epoch"] == 300
    of_rows = {task.row: task.settings["config"] for task in tasks if task.row}
    tuned = of_rows["ELMo, fine-tuned"]
    assert tuned["model"]["text_field_embedder"]["token_embedders"]["tokens"]["requires_grad"]
    rates = [group[1]["lr"] for group in tuned["trainer"]["optimizer"]["parameter_groups"]]
    assert rates == pytest.approx([4e-4, 1.6e-4, 6.4e-5])
    assert "parameter_groups" not in of_rows["ELMo, frozen"]["trainer"]["optimizer"]


def test_the_best_row_comes_first(curve: ModuleType) -> None:
    numbers = {("good", 100): [0.8, 0.84], ("good", 500): [0.9], ("bad", 100): [0.7, 0.7]}
    points = [
        curve.Point(row, labels, seed, accuracy)
        for (row, labels), accuracies in reversed(numbers.items())
        for seed, accuracy in enumerate(accuracies)
    ]
    table = curve.markdown(points, 2500)
    assert table.splitlines()[:4] == [
        "| labelled texts | 100 | 500 |",
        "|---|---:|---:|",
        "| good | 82.00 ± 2.83 | 90.00 |",
        "| bad | 70.00 ± 0.00 |  |",
    ]
    # The mean over all columns and rows is 0.807.
    assert "number of texts alone is 0.79 points" in table


def test_bags_of_words_are_measured_at_once(curve: ModuleType, tmp_path: Path) -> None:
    command = [str(TRAIN), str(DEV), "--folder", str(tmp_path), "--sizes", "16", "--seeds", "2"]
    ended = run_program(PROGRAM, *command, "--only", "none of these")
    assert ended.status == 0, ended.errors
    table = (tmp_path / "learning_curve.md").read_text(encoding="utf-8")
    assert table in ended.output
    points = curve.read_points(tmp_path / "learning_curve.json")
    of_svm = [(one.labels, one.seed) for one in points if one.row == curve.SVM]
    num_train = len(list(ag_news_rows(tmp_path / "train.csv")))
    assert of_svm == [(16, 0), (16, 1), (num_train, 0)]
    whole = points[of_svm.index((num_train, 0))]
    # Far above chance.
    assert whole.accuracy > 0.6
    picture = (tmp_path / "learning_curve.svg").read_text(encoding="utf-8")
    assert curve.SVM in picture and "labelled texts" in picture
    again = tmp_path / "again.svg"
    curve.draw(points, again)
    assert again.read_text(encoding="utf-8") == picture


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["--sizes", "0"], "expected one of `--seeds`, of `--jobs` and of each of `--sizes`"),
        (["--results", str(STUDY / "study.json")], "expected the `learning_curve.json` of a"),
        (["--results", "nowhere.json"], "nowhere.json: No such file"),
    ],
)
def test_a_mistake_is_one_line(arguments: List[str], told: str, tmp_path: Path) -> None:
    ended = run_program(PROGRAM, str(TRAIN), str(DEV), "--folder", str(tmp_path), *arguments)
    assert ended.status == 2
    assert told in ended.errors.splitlines()[-1]


@pytest.mark.exhaustive
def test_it_trains_measures_and_goes_on(curve: ModuleType, tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), str(TRAIN), str(DEV), "--folder", str(tmp_path)]
    command += ["--sizes", "16", "--seeds", "1"]
    command += ["--only", "^16 labels: (ELMo, fine-tuned|untrained biLM)"]
    # One step of the biLM's training too.
    command += ["--overrides", '{"data_loader.batches_per_epoch": 1, "trainer.num_epochs": 1}']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    points = curve.read_points(tmp_path / "learning_curve.json")
    trained = {point.row: point for point in points if point.settings}
    assert set(trained) == {"ELMo, fine-tuned", "untrained biLM"}
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "steps to go" in done.stdout and "steps to go" not in again.stdout
    # Nor is it trained in another folder, where its numbers are known.
    elsewhere = [str(tmp_path / "other") if word == str(tmp_path) else word for word in command]
    known = ["--results", str(tmp_path / "learning_curve.json")]
    other = subprocess.run([*elsewhere, *known], capture_output=True, text=True, check=True)
    assert "steps to go" not in other.stdout
    assert curve.read_points(tmp_path / "other" / "learning_curve.json") == points
