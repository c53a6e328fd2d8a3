import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, List

import optuna
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.search.study import STUDY_FILE, next_trial, num_tried, open_study, study_errors
from elmo_scratch.search.sweep import Choice, Halving, Metric, Number, Sweep, WholeNumber

SWEEP = Sweep("random", Metric("validation/loss", False), {"lr": Number(0, 1)})
GRID = Sweep(
    "grid", Metric("validation/loss", False), {"a": Choice((1, 2)), "b": Choice(("x", "y"))}
)


def draw(study: optuna.Study, sweep: Sweep, times: int) -> List[Any]:
    drawn = []
    for _ in range(times):
        trial = next_trial(study, sweep)
        drawn.append([one.draw(name, trial) for name, one in sweep.parameters.items()])
        study.tell(trial, 0.0)
    return drawn


def test_the_same_seed_draws_the_same_and_none_of_it_twice(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    first = draw(open_study(tmp_path / "one", SWEEP, {}, 3), SWEEP, 2)
    assert draw(open_study(tmp_path / "other", SWEEP, {}, 3), SWEEP, 2) == first
    later = draw(open_study(tmp_path / "one", SWEEP, {}, 3), SWEEP, 2)
    assert all(one not in first for one in later)


@pytest.mark.parametrize("seed", [-1, 2**32 - 1, 5 * 10**9])
def test_a_seed_may_be_any_whole_number(seed: int, tmp_path: Path) -> None:
    first = draw(open_study(tmp_path, SWEEP, {}, seed), SWEEP, 1)
    assert draw(open_study(tmp_path, SWEEP, {}, seed), SWEEP, 1) != first


@pytest.mark.parametrize(
    ("method", "sampler"),
    [("bayes", optuna.samplers.TPESampler), ("random", optuna.samplers.RandomSampler)],
)
def test_the_method_chooses_what_draws(method: str, sampler: type, tmp_path: Path) -> None:
    assert isinstance(open_study(tmp_path, SWEEP._replace(method=method), {}, 0).sampler, sampler)


@pytest.mark.parametrize("name", ["a?b", "a%3Fb", "a#b c"])
def test_a_folder_may_have_any_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    draw(open_study(folder, GRID, {}, 0), GRID, 1)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (folder / STUDY_FILE).is_file()
    assert num_tried(open_study(folder, GRID, {}, 0)) == 1


def test_a_grid_is_gone_through_in_its_order(tmp_path: Path) -> None:
    whole = [[1, "x"], [1, "y"], [2, "x"], [2, "y"]]
    assert draw(open_study(tmp_path, GRID, {}, 0), GRID, 1) == whole[:1]
    assert draw(open_study(tmp_path, GRID, {}, 0), GRID, 3) == whole[1:]


def test_it_goes_on_where_the_sweep_file_has_another_order(tmp_path: Path) -> None:
    draw(open_study(tmp_path, GRID, {}, 0), GRID, 2)
    turned = GRID._replace(parameters=dict(reversed(list(GRID.parameters.items()))))
    assert draw(open_study(tmp_path, turned, {}, 0), turned, 2) == [["x", 2], ["y", 2]]


def test_a_grid_may_be_larger_than_memory(tmp_path: Path) -> None:
    numbers = {"a": WholeNumber(0, 2**53), "b": WholeNumber(5, 2**53)}
    sweep = GRID._replace(parameters=numbers)
    assert draw(open_study(tmp_path, sweep, {}, 0), sweep, 2) == [[0, 5], [0, 6]]


def test_no_place_of_a_grid_is_left_out_where_a_search_was_stopped(tmp_path: Path) -> None:
    study = open_study(tmp_path, GRID, {}, 0)
    study.enqueue_trial({"a": "1", "b": '"x"'})
    assert num_tried(study) == 0
    assert draw(study, GRID, 2) == [[1, "x"], [1, "y"]]
    assert num_tried(study) == 2


@pytest.mark.parametrize("is_maximized", [False, True])
def test_more_or_less_is_better(is_maximized: bool, tmp_path: Path) -> None:
    sweep = SWEEP._replace(metric=Metric("validation/loss", is_maximized))
    direction = open_study(tmp_path, sweep, {}, 0).direction
    assert direction.name == ("MAXIMIZE" if is_maximized else "MINIMIZE")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"method": "bayes"}, "method"),
        ({"metric": Metric("validation/loss", True)}, "metric"),
        ({"parameters": {"lr": Number(0, 2)}}, "set of parameters"),
    ],
)
def test_another_search_cannot_go_on_there(
    change: Dict[str, Any], part: str, tmp_path: Path
) -> None:
    open_study(tmp_path, SWEEP, {"x": 1}, 0)
    with pytest.raises(ConfigurationError, match=f"holds a search with another {part}, which"):
        open_study(tmp_path, SWEEP._replace(**change), {"x": 1}, 0)


def test_neither_can_one_of_another_config(tmp_path: Path) -> None:
    open_study(tmp_path, SWEEP, {"x": 1}, 0)
    with pytest.raises(ConfigurationError, match="holds a search with another config, which"):
        open_study(tmp_path, SWEEP, {"x": 2}, 0)


def test_how_long_and_how_strict_may_change(tmp_path: Path) -> None:
    open_study(tmp_path, SWEEP, {}, 0)
    study = open_study(tmp_path, SWEEP._replace(run_cap=9, halving=Halving(1, 2)), {}, 1)
    assert isinstance(study.pruner, optuna.pruners.SuccessiveHalvingPruner)


def test_a_file_that_is_no_study_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    file.write_text("word " * 999, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="study.db: .* but: .*not a database$"):
        open_study(tmp_path, SWEEP, {}, 0)
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigurationError, match="study.db: .* but: .*unable to open .*file$"):
        open_study(tmp_path, SWEEP, {}, 0)


def test_a_study_of_another_kind_of_table_is_an_error(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "study.db")) as file:
        file.execute("create table studies (word text)")
    with pytest.raises(ConfigurationError, match="study.db: expected a study that Optuna keeps"):
        open_study(tmp_path, SWEEP, {}, 0)


def test_without_optuna_the_error_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("elmo_scratch.search.study.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="pip install 'optuna>=4'"):
        open_study(tmp_path, SWEEP, {}, 0)


def test_a_study_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="study.db: can't be written or read: disk I/O"):
        with study_errors(tmp_path):
            raise optuna.exceptions.StorageInternalError("disk I/O error\nand more")
    with pytest.raises(KeyError), study_errors(tmp_path):
        raise KeyError


def test_other_data_make_another_search(tmp_path: Path) -> None:
    data = tmp_path / "train.csv"
    data.write_text("some rows", encoding="utf-8")
    config = {"train_data_path": str(data), "callbacks": [{"type": "a" * 5000}, None, 3]}
    open_study(tmp_path, SWEEP, config, 0)
    open_study(tmp_path, SWEEP, config, 0)
    data.write_text("other rows", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="another content of the files that the config na"):
        open_study(tmp_path, SWEEP, config, 0)


def test_so_do_other_files_of_which_the_sweep_has_the_names(tmp_path: Path) -> None:
    archive = tmp_path / "bilm.tar.gz"
    archive.write_text("one", encoding="utf-8")
    sweep = SWEEP._replace(parameters={"bilm": Choice((str(archive), 3))})
    open_study(tmp_path, sweep, {}, 0)
    open_study(tmp_path, sweep, {}, 0)
    archive.write_text("another", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="another content of the files that the config na"):
        open_study(tmp_path, sweep, {}, 0)


def test_layers_that_its_trainings_keep_make_no_other_search(tmp_path: Path) -> None:
    layers = tmp_path / "layers.lmdb"
    config = {"elmo": {"keep_layers": {"type": "file", "path": str(layers)}}}
    open_study(tmp_path, SWEEP, config, 0)
    layers.write_text("vectors", encoding="utf-8")
    assert num_tried(open_study(tmp_path, SWEEP, config, 0)) == 0
