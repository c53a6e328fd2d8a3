import json
import tarfile
from pathlib import Path

import pytest

from elmo_scratch.search.search import EndedTraining
from elmo_scratch.search.sweep import Metric

ACCURACY = Metric("validation/accuracy", is_maximized=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a training of eleven epochs that has ended well."""
    folder = tmp_path / "trial-0"
    folder.mkdir()
    for epoch in range(11):
        metrics = json.dumps({"best_validation_accuracy": epoch / 20})
        (folder / f"metrics_epoch_{epoch}.json").write_text(metrics, encoding="utf-8")
    (folder / "metrics.json").write_text(metrics, encoding="utf-8")
    return folder


def test_what_has_ended_well_has_a_result(folder: Path) -> None:
    trained = EndedTraining(folder)
    assert trained.has_ended() and trained.has_result() and not trained.has_failed()
    assert trained.result(ACCURACY) == 0.5
    trained.stop()


def test_epochs_are_told_once_and_in_their_order(folder: Path) -> None:
    trained = EndedTraining(folder)
    assert list(trained.new_epochs(ACCURACY)) == [(place + 1, place / 20) for place in range(11)]
    assert list(trained.new_epochs(ACCURACY)) == []


def test_a_result_that_is_not_whole_is_none(folder: Path) -> None:
    (folder / "metrics.json").write_text('{"best_valid', encoding="utf-8")
    folder.with_name("trial-0.log").write_text("a line\n\n", encoding="utf-8")
    trained = EndedTraining(folder)
    assert trained.has_failed() and not trained.has_result()
    assert trained.last_lines() == "a line\nended without a whole metrics.json"


def test_a_folder_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    trained = EndedTraining(tmp_path / "trial-1")
    assert not trained.has_result()
    assert list(trained.new_epochs(ACCURACY)) == []


def test_an_archive_that_is_missing_is_made(folder: Path) -> None:
    trained = EndedTraining(folder)
    trained.pack(None)
    assert not (folder / "model.tar.gz").exists()
    (folder / "vocabulary").mkdir()
    for name in ("config.json", "best.th", "notes.txt"):
        (folder / name).write_text(name, encoding="utf-8")
    trained.pack(["notes.txt"])
    with tarfile.open(folder / "model.tar.gz") as archive:
        assert set(archive.getnames()) == {"config.json", "weights.th", "vocabulary", "notes.txt"}
    before = (folder / "model.tar.gz").read_bytes()
    trained.pack(None)
    assert (folder / "model.tar.gz").read_bytes() == before
