"""The report that the study ends with."""

from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List

import pytest

from elmo_scratch.search.tasks import Task
from tests.examples.ag_news_study import trained


@pytest.fixture
def rows(modules: Dict[str, ModuleType]) -> List[Any]:
    results = modules["results"]
    confusion = [[3, 1], [2, 4]]
    return [
        results.Row(part, name, [trained(modules, name, 0, accuracy, confusion)])
        for part, name, accuracy in (
            ("mixes", "top", 0.8),
            ("mixes", "mean", 0.9),
            ("titles", "no biLM", 0.7),
            ("titles", "word2vec", 0.6),
            ("titles", "linear SVM", 0.95),
        )
    ]


def test_a_report_shows_bilms_and_the_best_rows_of_this_folder(
    modules: Dict[str, ModuleType], rows: List[Any], tmp_path: Path
) -> None:
    def task(name: str, part: str, row: str, is_training: bool = True) -> Task:
        folder = tmp_path / name
        folder.mkdir()
        if name != "running":
            (folder / "done").touch()
        return Task(name, part, row, [], {}, folder, [], None, is_training)

    tasks = [
        task("word2vec", "", "", is_training=False),
        task("words", "", ""),
        task("running", "", ""),
        task("top", "mixes", "top"),
        task("mean 0", "mixes", "mean"),
        task("mean 1", "mixes", "mean"),
        task("none", "titles", "no biLM"),
        task("word vectors", "titles", "word2vec"),
    ]
    shown = modules["report"].shown_runs(rows, tasks)
    # Of titles the best row was trained without a folder.
    assert [one.name for one in shown] == ["words", "mean 0", "mean 1", "none"]


def test_a_study_without_trainings_of_its_own_is_reported(
    modules: Dict[str, ModuleType], rows: List[Any], tmp_path: Path
) -> None:
    modules["results_file"].write_results(rows, tmp_path / "study.json")
    page, pdf = modules["report"].write_reports(rows, [], tmp_path, tmp_path / "none.csv")
    text = page.read_text("utf-8")
    for row in rows:
        assert row.name in text
    assert pdf.read_bytes().startswith(b"%PDF-")
