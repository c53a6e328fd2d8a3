import os
from pathlib import Path
from typing import Any

import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.report import State, find_runs, read_run
from elmo_scratch.report.run import Measure, run_names
from tests.report.run_folders import RECORD, write_crash, write_json, write_lock, write_run
from tests.training.training_lock_test import training_in


def test_a_finished_training(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, [0.5, 0.75, 0.25]))
    assert (run.state, run.reason, run.problems) == (State.FINISHED, "", ())
    assert run.measure == Measure("accuracy", higher_is_better=True)
    assert (run.score, run.best_epoch, run.num_epochs) == (0.75, 1, 2)
    assert run.curve("validation_accuracy") == [(1, 0.5), (2, 0.75), (3, 0.25)]
    assert run.seconds == 30.5
    assert run.seeds == {"random_seed": 1, "numpy_seed": 1, "pytorch_seed": 1}
    assert run.settings["trainer.num_epochs"] == 2


def test_a_training_in_progress_names_its_process(tmp_path: Path) -> None:
    write_run(tmp_path, is_over=False)
    with training_in(tmp_path) as process:
        run = read_run(tmp_path)
        assert run.state is State.RUNNING
        assert run.reason.startswith(f"process {process.pid} on ")
    # What it measured so far is shown.
    assert run.score == 0.75


def test_a_recovered_training_is_in_progress_though_it_was_over_before(tmp_path: Path) -> None:
    write_run(tmp_path)
    with training_in(tmp_path):
        assert read_run(tmp_path).state is State.RUNNING


def test_an_error_that_ended_a_training_is_told(tmp_path: Path) -> None:
    write_run(tmp_path, is_over=False)
    write_lock(tmp_path)
    error = "ValueError: the loss is NaN\nwhich has two lines"
    write_crash(tmp_path, f"KeyError: 3\n\nDuring that:\n\nTraceback (most\n  x\n{error}")
    run = read_run(tmp_path)
    assert (run.state, run.reason) == (State.FAILED, "ValueError: the loss is NaN")


def test_an_error_before_a_recovery_counts_no_more(tmp_path: Path) -> None:
    write_run(tmp_path, is_over=False)
    write_lock(tmp_path)
    write_crash(tmp_path, "ValueError: the loss is NaN")
    with (tmp_path / "out.log").open("a") as log:
        log.write(RECORD.format("INFO", "allennlp - Training"))
    assert read_run(tmp_path).state is State.STOPPED


def test_what_another_machine_trains_may_go_on(tmp_path: Path) -> None:
    write_run(tmp_path, is_over=False)
    write_lock(tmp_path, host="elsewhere")
    assert read_run(tmp_path).state is State.UNFINISHED
    (tmp_path / "training.lock").unlink()
    assert read_run(tmp_path).state is State.UNFINISHED


def test_a_training_without_an_epoch(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, [], is_over=False))
    assert (run.score, run.best_epoch, run.seconds) == (None, None, 0.0)


def test_metrics_that_cant_be_read_are_told_and_the_others_shown(tmp_path: Path) -> None:
    write_run(tmp_path, [0.5, 0.75, 0.25])
    (tmp_path / "metrics_epoch_1.json").write_text("[", encoding="utf-8")
    (tmp_path / "metrics.json").write_text("7", encoding="utf-8")
    run = read_run(tmp_path)
    assert run.state is State.FINISHED
    assert run.curve("validation_accuracy") == [(1, 0.5), (3, 0.25)]
    assert run.score == 0.75  # of the last epoch's file
    epoch, final = run.problems
    assert epoch.startswith(f"{tmp_path}/metrics_epoch_1.json: expected JSON")
    assert final.startswith(f"{tmp_path}/metrics.json: expected the file to be a JSON object")


def test_of_many_problems_the_first_are_told(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, more={f"training_{number}": "x" for number in range(5)}))
    assert len(run.problems) == 9
    assert run.problems[-1] == "… and 7 more values that can't be read"


@pytest.mark.parametrize(
    "trainer, measure",
    [
        ({}, Measure("loss", False)),
        ({"validation_metric": "-perplexity"}, Measure("perplexity", False)),
        ({"validation_metric": ["+f1", "-loss"]}, Measure("f1", True)),
        ({"validation_metric": 7}, Measure("loss", False)),
        ({"validation_metric": []}, Measure("loss", False)),
        (3, Measure("loss", False)),
    ],
)
def test_the_measure_is_that_of_the_config(tmp_path: Path, trainer: Any, measure: Measure) -> None:
    write_run(tmp_path, config={"trainer": trainer})
    assert read_run(tmp_path).measure == measure


def test_the_vocabulary_is_counted(tmp_path: Path) -> None:
    write_run(tmp_path)
    (tmp_path / "vocabulary").mkdir()
    (tmp_path / "vocabulary" / "tokens.txt").write_text("a\nb\nc\n", encoding="utf-8")
    (tmp_path / "vocabulary" / "non_padded_namespaces.txt").write_text("x\n", encoding="utf-8")
    assert read_run(tmp_path).vocabulary == {"tokens": 3}


def test_a_config_that_cant_be_read_is_an_error(tmp_path: Path) -> None:
    write_json(tmp_path / "config.json", [])
    with pytest.raises(ConfigurationError, match="config.json: expected the file to be"):
        read_run(tmp_path)


def test_a_folder_of_trainings_stands_for_all_of_them(tmp_path: Path) -> None:
    for name in ("b/run", "a", "deep/er/est/run", "too/deep/er/est/run"):
        write_run(tmp_path / name)
    os.symlink(tmp_path, tmp_path / "a" / "circle")
    os.symlink(tmp_path, tmp_path / "circle")
    names = [str(path.relative_to(tmp_path)) for path in find_runs(tmp_path)]
    assert names == ["a", "b/run", "deep/er/est/run"]
    assert find_runs(tmp_path / "a") == [tmp_path / "a"]


@pytest.mark.parametrize("name, message", [("none", "there is none"), ("file", "it is none")])
def test_what_is_no_folder_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=f"{name}: expected the output folder.*{message}"):
        find_runs(tmp_path / name)


def test_a_folder_without_trainings_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no config.json. Give what"):
        find_runs(tmp_path)


def test_names_are_as_short_as_they_can_be() -> None:
    def names(*paths: str) -> list:
        return run_names([Path(path) for path in paths])

    assert names("/runs/bilm") == ["bilm"]
    assert names("/runs/bilm/run", "/runs/cnn/run") == ["bilm", "cnn"]
    assert names("/a/s_1/x", "/b/s_1/y", "/b/s_2/x") == ["s_1/x", "s_1/y", "s_2/x"]
    assert names("/a/s_1", "/b/s_1") == ["a", "b"]
    assert names("/a/run", "/a/run") == ["a", "a"]
    assert names("/a/run", "/b/c") == ["a", "c"]
