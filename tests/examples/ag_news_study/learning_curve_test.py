"""`learning_curve.py`: what it draws, what reads what, and how it is told."""

import json
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Dict, List

import pytest

from elmo_scratch.data.readers import ag_news_rows
from tests import PROJECT_ROOT
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
            # It is measured at its end alone, each text once: nothing is chosen.
            config = task.settings["config"]
            assert config["trainer"]["num_epochs"] == 1
            assert config["data_loader"]["batches_per_epoch"] == 300
            assert "batches_per_epoch" not in config["validation_data_loader"]
    of_rows = {task.row: task.settings["config"] for task in tasks if task.row}
    tuned = of_rows["ELMo, fine-tuned"]
    assert tuned["model"]["text_field_embedder"]["token_embedders"]["tokens"]["requires_grad"]
    rates = [group[1]["lr"] for group in tuned["trainer"]["optimizer"]["parameter_groups"]]
    assert rates == pytest.approx([4e-4, 1.6e-4, 6.4e-5])
    assert "parameter_groups" not in of_rows["ELMo, frozen"]["trainer"]["optimizer"]
    # Static vectors have all their words too.
    known = of_rows["word2vec"]["vocabulary"]["pretrained_files"]["tokens"]
    embedder = of_rows["word2vec"]["model"]["text_field_embedder"]["token_embedders"]["tokens"]
    assert known == embedder["pretrained_file"]
    assert "vocabulary" not in of_rows["ELMo, frozen"]


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
    # At 90 % and at 70 %.
    assert "number of texts alone is 0.60 to 0.92 points" in table


def test_rows_are_compared_by_the_columns_that_they_share(curve: ModuleType) -> None:
    numbers = {("large alone", 500): 0.89, ("both", 500): 0.9, ("both", 100): 0.5}
    points = [curve.Point(row, size, 0, one) for (row, size), one in numbers.items()]
    assert list(curve.accuracies(points)) == ["both", "large alone"]


@pytest.mark.skipif(find_spec("fasttext") is None, reason="fastText is not installed")
def test_fast_text_learns(curve: ModuleType) -> None:
    train, measured = (list(ag_news_rows(path)) for path in (TRAIN, DEV))
    accuracy = curve.by_fast_text(train, measured)
    assert 0.6 < accuracy < 1.0
    assert curve.by_fast_text(train, measured) == accuracy


def test_bags_of_words_are_measured_and_told(curve: ModuleType, tmp_path: Path) -> None:
    train, measured = (list(ag_news_rows(path)) for path in (TRAIN, DEV))
    texts = {
        size: [curve.labelled(train, size, seed) for seed in range(2)] for size in (16, len(train))
    }
    points = list(curve.points_of_bags(texts, measured))
    of_svm = {(one.labels, one.seed): one.accuracy for one in points if one.row == curve.SVM}
    # There is one draw of all texts.
    assert list(of_svm) == [(16, 0), (16, 1), (len(train), 0)]
    # Far above chance.
    assert of_svm[len(train), 0] > 0.6
    curve.write_results(points, len(measured), tmp_path)
    assert curve.read_points(tmp_path / "learning_curve.json") == points
    table = (tmp_path / "learning_curve.md").read_text(encoding="utf-8")
    assert table == curve.markdown(points, len(measured))
    picture = (tmp_path / "learning_curve.svg").read_text(encoding="utf-8")
    assert curve.SVM in picture and "labelled texts" in picture
    again = tmp_path / "again.svg"
    curve.draw(points, again)
    assert again.read_text(encoding="utf-8") == picture


def test_the_pages_show_the_numbers_of_the_file(curve: ModuleType) -> None:
    file = STUDY / "learning_curve.json"
    num_measured = json.loads(file.read_text(encoding="utf-8"))["measured_texts"]
    table = curve.markdown(curve.read_points(file), num_measured)
    assert file.with_suffix(".md").read_text(encoding="utf-8") == table
    rows, _, _ = table.partition("\n\n")
    results = (PROJECT_ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert rows in results


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["--seeds", "0"], "expected at least one of `--seeds`"),
        (["--sizes", "16", "3"], "expected `--sizes` from 4 to"),
        (["--only", "("], "is no regular expression"),
        (["--overrides", "[1]"], "expected a JSON object"),
        (["--overrides", '{"random_seed": 7}', "--sizes", "16"], "each training has its own"),
        (["--sizes", "16", "--seeds", "1", "--only", "no such row"], "230 labels: word2vec"),
        (["--results", str(STUDY / "study.json")], "expected the `learning_curve.json` of a"),
        (["--results", "nowhere.json"], "nowhere.json: No such file"),
    ],
)
def test_a_mistake_is_one_line(arguments: List[str], told: str, tmp_path: Path) -> None:
    ended = run_program(PROGRAM, str(TRAIN), str(DEV), "--folder", str(tmp_path), *arguments)
    assert ended.status == 2
    assert told in ended.errors[-2000:]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("forked_commands")
def test_it_trains_measures_and_goes_on(curve: ModuleType, tmp_path: Path) -> None:
    command = [str(TRAIN), str(DEV), "--folder", str(tmp_path)]
    command += ["--sizes", "16", "--seeds", "1"]
    command += ["--only", "^16 labels: (ELMo, fine-tuned|word2vec)"]
    # One step of the biLM's training too.
    command += ["--overrides", '{"data_loader.batches_per_epoch": 1, "trainer.num_epochs": 1}']
    done = run_program(PROGRAM, *command)
    assert done.status == 0, done.errors[-2000:]
    points = curve.read_points(tmp_path / "learning_curve.json")
    trained = {point.row: point for point in points if point.settings}
    assert set(trained) == {"ELMo, fine-tuned", "word2vec"}
    # Vectors are those of all words that were read, and not of the labelled texts alone.
    run = tmp_path / "16_labels" / "word2vec-seed_0" / "run"
    words = (run / "vocabulary" / "tokens.txt").read_text(encoding="utf-8").split()
    few = (tmp_path / "labelled_16_0.csv").read_text(encoding="utf-8").lower()
    assert any(word.isalpha() and word not in few for word in words[1:])
    # Each text that was held back is measured once.
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    num_measured = len(list(ag_news_rows(tmp_path / "measured.csv")))
    assert sum(map(sum, metrics["best_validation_confusion"])) == num_measured

    def when_done() -> Dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in tmp_path.glob("**/done")}

    before = when_done()
    # As a program of its own it finds that nothing is left to do.
    subprocess.run([sys.executable, str(PROGRAM), *command], capture_output=True, check=True)
    assert when_done() == before
    # Nor is it trained in another folder, where its numbers are known.
    elsewhere = [str(tmp_path / "other") if word == str(tmp_path) else word for word in command]
    known = ["--results", str(tmp_path / "learning_curve.json")]
    assert run_program(PROGRAM, *elsewhere, *known).status == 0
    assert curve.read_points(tmp_path / "other" / "learning_curve.json") == points
    assert not list((tmp_path / "other").glob("**/done"))
    # Results of other settings are refused.
    other = run_program(PROGRAM, *elsewhere[:-2], *known)
    assert other.status == 2
    assert "2 of the trainings in `--results` have other settings" in other.errors
