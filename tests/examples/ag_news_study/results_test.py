from pathlib import Path
from types import ModuleType
from typing import Any, Dict

import pytest

from elmo_scratch.search.tasks import Task
from tests.examples.ag_news_study import trained


def test_rows_have_what_was_trained_here_and_elsewhere(
    modules: Dict[str, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [
        Task(f"{row}, {seed}", "mixes", row, [], {}, tmp_path / f"{row}{seed}", [], [row, seed])
        for row in ("top", "mean")
        for seed in range(2)
    ]
    bilm = Task("words", "", "", [], {}, tmp_path / "words", [], None)
    for task in (tasks[1], bilm):
        task.folder.mkdir()
        (task.folder / "done").touch()

    def training_of(task: Any) -> Any:
        return trained(modules, task.fingerprint(), task.settings[1], 0.9, [[1, 2], [3, 4]])

    monkeypatch.setattr(modules["results"], "training_of", training_of)
    fingerprint = tasks[0].fingerprint()
    known = {fingerprint: trained(modules, fingerprint, 0, 0.8, [[5, 6], [7, 8]])}
    (row,) = modules["results"].collected([bilm, *tasks], known)
    assert (row.part, row.name) == ("mixes", "top")
    assert [training.seed for training in row.trainings] == [0, 1]
    assert row.scores("accuracy") == [0.8, 0.9]
    assert (row.mean("accuracy"), row.deviation("accuracy")) == pytest.approx(
        (0.85, 0.0707), abs=1e-4
    )
    assert row.confusion() == [[6, 8], [10, 12]]
    assert modules["results"].collected([bilm, *tasks[2:]], known) == []
