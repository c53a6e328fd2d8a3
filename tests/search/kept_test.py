import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Callable

import optuna
import pytest
from allennlp.common.checks import ConfigurationError

from elmo_scratch.search import KeptSearch, holds_search, read_search
from elmo_scratch.search import study as kept
from elmo_scratch.search.study import open_study
from elmo_scratch.search.sweep import Choice, Metric, Number, Sweep

METRIC = Metric("validation/accuracy", True)
SWEEP = Sweep("random", METRIC, {"mix": Choice(("top", None)), "lr": Number(0.0, 1.0)})


def write_search(folder: Path, *outcomes: str, sweep: Sweep = SWEEP) -> Path:
    """Of trials that ended like this: with a number, or with a word for why there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    study = open_study(folder, sweep, {}, 0)
    for number, outcome in enumerate(outcomes):
        trial = study.ask()
        trial.set_user_attr("values", {"mix": None if number else "top", "lr": number / 8})
        if outcome == "failed":
            trial.set_user_attr("reason", "reading\nout of memory")
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        elif outcome == "behind":
            trial.report(0.25, 2)
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        elif outcome != "running":
            study.tell(trial, float(outcome))
    return folder


def test_all_trials_are_told_and_nothing_is_changed(tmp_path: Path) -> None:
    folder = write_search(tmp_path / "a b#", "0.5", "failed", "behind", "0.75", "running")
    assert holds_search(folder) and not holds_search(tmp_path)
    before = (folder / "study.db").read_bytes()
    found = read_search(folder)
    assert [(one.ending, one.value) for one in found.trials] == [
        ("finished", 0.5),
        ("failed", None),
        ("stopped early", 0.25),
        ("finished", 0.75),
        ("not finished", None),
    ]
    assert [one.number for one in found.finished()] == [3, 0]
    assert found.trials[1].reason == "reading\nout of memory"
    assert found.trials[0].values == {"mix": "top", "lr": 0.0}
    assert (found.method, found.metric) == ("random", METRIC)
    assert found.parameters["mix"] == "Choice(values=('top', None))"
    assert (folder / "study.db").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["study.db"]


def test_of_lower_is_better_the_lowest_come_first(tmp_path: Path) -> None:
    loss = SWEEP._replace(metric=Metric("validation/loss", False))
    found: KeptSearch = read_search(write_search(tmp_path, "0.5", "0.75", sweep=loss))
    assert [one.number for one in found.finished()] == [0, 1]


def no_database(file: Path) -> None:
    file.write_text("word " * 999, encoding="utf-8")


def other_tables(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("create table studies (word text)")


def a_view(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("create view x as select 1")


def no_study(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("delete from studies")
        database.commit()


def odd_numbers(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("update study_user_attributes set value_json = '[1]'")
        database.commit()


def broken_json(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("update trial_user_attributes set value_json = '{'")
        database.commit()


@pytest.mark.parametrize(
    "change, message",
    [
        (no_database, "but: file is not a database"),
        (other_tables, "expected what `allennlp elmo-search` keeps, but"),
        (a_view, "but: it holds more than tables"),
        (no_study, "expected what `allennlp elmo-search` keeps, but"),
        (odd_numbers, "expected a search that names its metric and its parameters"),
        (broken_json, "but: Expecting property name"),
    ],
)
def test_what_is_no_search_is_refused(
    tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    change(write_search(tmp_path, "0.5") / "study.db")
    with pytest.raises(ConfigurationError, match=f"study.db: .*{message}"):
        read_search(tmp_path)


def test_a_large_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_BYTES", 2**10)
    with pytest.raises(ConfigurationError, match="study.db: .* it has more than"):
        read_search(write_search(tmp_path, "0.5"))


def test_without_optuna_the_error_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_search(tmp_path, "0.5")
    monkeypatch.setattr(kept, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="pip install 'optuna>=4'"):
        read_search(tmp_path)
