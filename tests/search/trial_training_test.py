import json
import time
from pathlib import Path

import pytest

from elmo_scratch.search.search import TrialTraining
from elmo_scratch.search.sweep import Metric

ACCURACY = Metric("validation/accuracy", is_maximized=True)


def wait_for(training: TrialTraining) -> None:
    while not training.has_ended():
        time.sleep(0.02)


def test_it_trains_with_the_overrides(config: Path, tmp_path: Path) -> None:
    words = ["--include-package", "mine"]
    training = TrialTraining(tmp_path / "trial-0", config, {"x": 0.8}, words)
    wait_for(training)
    assert not training.has_failed()
    assert training.result(ACCURACY) == 0.8
    seen = json.loads((tmp_path / "trial-0" / "seen.json").read_text(encoding="utf-8"))
    assert seen["words"] == words


def test_epochs_are_told_once_and_in_their_order(config: Path, tmp_path: Path) -> None:
    training = TrialTraining(tmp_path / "trial-0", config, {"x": 1.1, "epochs": 11})
    assert list(training.new_epochs(ACCURACY)) == []
    wait_for(training)
    epochs = [(epoch, pytest.approx(epoch / 10)) for epoch in range(1, 12)]
    assert list(training.new_epochs(ACCURACY)) == epochs
    assert list(training.new_epochs(ACCURACY)) == []


def test_an_epoch_that_is_being_written_is_told_later(config: Path, tmp_path: Path) -> None:
    training = TrialTraining(tmp_path / "trial-0", config, {"epochs": 1})
    wait_for(training)
    file = tmp_path / "trial-0" / "metrics_epoch_0.json"
    whole = file.read_text(encoding="utf-8")
    file.write_text(whole[:9], encoding="utf-8")
    assert list(training.new_epochs(ACCURACY)) == []
    file.write_text(whole, encoding="utf-8")
    assert list(training.new_epochs(ACCURACY)) == [(1, 0.5)]


def test_epochs_before_the_first_that_is_validated_are_left_out(
    config: Path, tmp_path: Path
) -> None:
    training = TrialTraining(tmp_path / "trial-0", config, {"epochs": 3})
    wait_for(training)
    for number in (0, 1):
        file = tmp_path / "trial-0" / f"metrics_epoch_{number}.json"
        file.write_text('{"best_epoch": null, "epoch": 0}', encoding="utf-8")
    assert [epoch for epoch, _ in training.new_epochs(ACCURACY)] == [3]


def test_what_failed_tells_its_last_lines(config: Path, tmp_path: Path) -> None:
    training = TrialTraining(tmp_path / "trial-0", config, {"x": -1})
    wait_for(training)
    assert training.has_failed()
    assert training.last_lines() == "first line\nx is below 0"
    assert training.log == tmp_path / "trial-0.log"


def test_a_damaged_result_is_none(config: Path, tmp_path: Path) -> None:
    training = TrialTraining(tmp_path / "trial-0", config, {"x": 0.8})
    wait_for(training)
    (tmp_path / "trial-0" / "metrics.json").write_text('{"best_valid', encoding="utf-8")
    assert training.has_failed()
    assert training.last_lines().endswith("ended without a whole metrics.json")


def test_what_ends_well_without_a_result_has_failed(config: Path, tmp_path: Path) -> None:
    training = TrialTraining(tmp_path / "trial-0", config, {"leaves_result": False})
    wait_for(training)
    assert training.has_failed()
    assert training.last_lines() == "ended without a whole metrics.json"


def test_it_can_be_stopped(config: Path, tmp_path: Path) -> None:
    (tmp_path / "wait").write_text("1", encoding="utf-8")
    training = TrialTraining(tmp_path / "trial-0", config, {})
    assert not training.has_ended()
    training.stop()
    assert training.has_ended()
    assert training.last_lines() == "ended by signal 9"
    training.stop()
