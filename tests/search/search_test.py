import json
from pathlib import Path
from typing import Any, List

import optuna
import pytest
from allennlp.common.checks import ConfigurationError
from filelock import FileLock

from elmo_scratch.search.search import Search
from elmo_scratch.search.sweep import Choice, Halving, Metric, Number, Sweep, WholeNumber

ACCURACY = Metric("validation/accuracy", True)
SWEEP = Sweep("random", ACCURACY, {"x": Number(0, 1)})


def grid(*values: float) -> Sweep:
    """Of the accuracies that the trainings reach."""
    return Sweep("grid", ACCURACY, {"x": Choice(values)})


def states(study: optuna.Study) -> List[str]:
    return [trial.state.name for trial in study.trials]


def test_each_trial_is_trained_with_its_values(config: Path, tmp_path: Path) -> None:
    search = Search(grid(0.2, 0.9, 0.4), config, tmp_path / "search", '{"epochs": 1}')
    study = search.run(num_jobs=2)
    assert [trial.value for trial in study.trials] == [0.2, 0.9, 0.4]
    for number, x in enumerate((0.2, 0.9, 0.4)):
        file = tmp_path / "search" / f"trial-{number}" / "metrics.json"
        settings = json.loads(file.read_text(encoding="utf-8"))["settings"]
        assert settings == {"x": x, "epochs": 1}


def test_what_was_trained_is_not_trained_again(config: Path, tmp_path: Path) -> None:
    first = Search(SWEEP, config, tmp_path / "search").run(1)
    study = Search(SWEEP, config, tmp_path / "search").run(2)
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert study.trials[0].datetime_complete == first.trials[0].datetime_complete
    assert study.trials[0].value != study.trials[1].value
    assert len(Search(SWEEP, config, tmp_path / "search").run(1).trials) == 2


def interrupt(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops a search when two of its trainings have an epoch behind them."""
    search.folder.with_name("wait").write_text("1", encoding="utf-8")

    def stop_when_both_have(_: float) -> None:
        if len(list(search.folder.glob("trial-*/model_state_e1_b0.th"))) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("elmo_scratch.search.search.time.sleep", stop_when_both_have)
        search.run(num_jobs=2)
    storage = f"sqlite:///{search.folder / 'study.db'}"
    assert states(optuna.load_study(study_name=None, storage=storage)) == ["RUNNING", "RUNNING"]


def seen(search: Search, trial: int) -> Any:
    """What the last training of a trial was started with."""
    return json.loads((search.folder / f"trial-{trial}" / "seen.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "checkpointer",
    [{"type": "elmo_scratch_whole"}, "elmo_scratch_whole", {"type": "default"}, None],
)
def test_a_search_that_is_stopped_goes_on_with_what_was_being_trained(
    checkpointer: Any, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"x": 0.5, "epochs": 4, "trainer": {"checkpointer": checkpointer}}
    config.write_text(json.dumps(settings), encoding="utf-8")
    search = Search(grid(0.2, 0.9, 0.4), config, tmp_path / "search")
    interrupt(search, monkeypatch)
    (tmp_path / "wait").unlink()
    study = search.run()
    assert [trial.value for trial in study.trials] == [0.2, 0.9, 0.4]
    # Other checkpointers may leave a file that is not whole.
    goes_on = ["--recover"] if "elmo_scratch_whole" in str(checkpointer) else []
    assert [seen(search, trial)["words"] for trial in range(3)] == [goes_on, goes_on, []]


def test_what_ended_while_the_search_was_stopped_is_not_trained_again(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill of the search alone."""
    search = Search(grid(0.2, 0.9), config, tmp_path / "search")
    interrupt(search, monkeypatch)
    before = [seen(search, trial)["pid"] for trial in range(2)]
    for trial, reached in enumerate((0.3, 0.8)):
        metrics = json.dumps({"best_validation_accuracy": reached})
        for name in ("metrics_epoch_1.json", "metrics.json"):
            (search.folder / f"trial-{trial}" / name).write_text(metrics, encoding="utf-8")
    study = search.run()
    assert [trial.value for trial in study.trials] == [0.3, 0.8]
    assert study.trials[1].intermediate_values == {1: pytest.approx(0.225), 2: 0.8}
    assert [seen(search, trial)["pid"] for trial in range(2)] == before


def test_a_training_that_fails_is_noted_and_the_search_goes_on(
    config: Path, tmp_path: Path
) -> None:
    study = Search(grid(-1, 0.5), config, tmp_path / "search").run()
    assert states(study) == ["FAIL", "COMPLETE"]
    assert study.trials[0].user_attrs["reason"] == "first line\nx is below 0"


def test_one_that_leaves_no_result_is_noted_too(config: Path, tmp_path: Path) -> None:
    study = Search(grid(0.5), config, tmp_path / "search", '{"leaves_result": false}').run()
    assert states(study) == ["FAIL"]
    assert study.trials[0].user_attrs["reason"] == "ended without a whole metrics.json"


def test_a_metric_that_is_no_number_is_a_failure(config: Path, tmp_path: Path) -> None:
    sweep = Sweep("grid", ACCURACY, {"x": Choice((float("nan"), 0.5))})
    study = Search(sweep, config, tmp_path / "search").run()
    assert states(study) == ["FAIL", "COMPLETE"]
    assert study.trials[0].user_attrs["reason"] == "validation/accuracy is not a number"


@pytest.mark.parametrize("name", ["validation/loss", "loss"])
def test_a_metric_that_is_missing_ends_the_search(name: str, config: Path, tmp_path: Path) -> None:
    sweep = grid(0.2, 0.4)._replace(metric=Metric(name, True))
    with pytest.raises(ConfigurationError, match="there are: best_epoch, best_validation_acc"):
        Search(sweep, config, tmp_path / "search").run()


def test_trainings_that_are_behind_are_stopped(config: Path, tmp_path: Path) -> None:
    (tmp_path / "wait").write_text("0.3", encoding="utf-8")  # the second would never end
    sweep = grid(0.8, 0.2, 0.9)._replace(halving=Halving(1, 2))
    study = Search(sweep, config, tmp_path / "search").run()
    assert states(study) == ["COMPLETE", "PRUNED", "COMPLETE"]
    assert study.trials[0].intermediate_values == pytest.approx({1: 0.2, 2: 0.4, 3: 0.6, 4: 0.8})


def test_two_searches_do_not_share_a_folder(config: Path, tmp_path: Path) -> None:
    search = Search(SWEEP, config, tmp_path / "search")
    (tmp_path / "search").mkdir()
    with FileLock(tmp_path / "search" / "lock"):
        with pytest.raises(ConfigurationError, match="another search works there"):
            search.run(1)


def test_somebody_says_how_many(config: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="give --trials, or `run_cap`"):
        Search(SWEEP, config, tmp_path / "search").run()
    study = Search(SWEEP._replace(run_cap=1), config, tmp_path / "search").run()
    assert len(study.trials) == 1
    for name, numbers in (("--trials", (0, 1)), ("--jobs", (1, 0))):
        with pytest.raises(ConfigurationError, match=f"expected {name} of 1 or more, got 0"):
            Search(SWEEP, config, tmp_path / "search").run(*numbers)


def test_a_grid_may_be_larger_than_anybody_trains(config: Path, tmp_path: Path) -> None:
    sweep = Sweep("grid", ACCURACY, {"x": WholeNumber(0, 2_000_000_000)})
    study = Search(sweep, config, tmp_path / "search").run(1)
    assert [trial.value for trial in study.trials] == [0]


def test_parameters_and_overrides_fit_the_config_together(config: Path, tmp_path: Path) -> None:
    config.write_text('{"trainer": {"optimizer": {"type": "adam"}}}', encoding="utf-8")
    sweep = Sweep("random", ACCURACY, {"trainer.optimizer.lr": Number(0, 1)})
    Search(sweep, config, tmp_path, '{"trainer.optimizer.type": "sgd"}')
    for overrides in ('{"trainer.optimizer": {}}', '{"trainer": {"optimizer": {}}}'):
        with pytest.raises(ConfigurationError, match="beside the overrides: .*optimizer.lr"):
            Search(sweep, config, tmp_path, overrides)
    slip = Sweep("random", ACCURACY, {"trainer.optimiser.lr": Number(0, 1)})
    with pytest.raises(ConfigurationError, match="take the parameters .*optimiser.lr"):
        Search(slip, config, tmp_path)


def test_overrides_are_an_object(config: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match="--overrides to be a JSON object, but got \\[1\\]"
    ):
        Search(SWEEP, config, tmp_path / "search", "[1]")


def test_a_config_that_cannot_be_read_is_an_error(config: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="missing.jsonnet"):
        Search(SWEEP, tmp_path / "missing.jsonnet", tmp_path / "search")
    with pytest.raises(ConfigurationError, match="expected a config, but it is a folder"):
        Search(SWEEP, tmp_path, tmp_path / "search")
    with pytest.raises(ConfigurationError, match="config.json: overrides for 'epochs"):
        Search(SWEEP, config, tmp_path / "search", '{"epochs.few": 1}')
