"""Reads what a search has kept in its folder, without changing it."""

import math
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional
from urllib.parse import quote

from allennlp.common.checks import ConfigurationError

from elmo_scratch.search.study import STUDY_FILE
from elmo_scratch.search.sweep import Metric

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

MAX_BYTES = 2**28
"""A study may be as large: a trial takes some kilobytes of it."""

ENDINGS = {
    "COMPLETE": "finished",
    "PRUNED": "stopped early",
    "FAIL": "failed",
    "RUNNING": "not finished",
    "WAITING": "not begun",
}
"""Optuna's states of a trial, for readers."""


class KeptTrial(NamedTuple):
    """
    A trial.

    # Parameters

    number : `int`
        From 0 on; its training is in `trial-<number>`.
    ending : `str`
        One of the values of `ENDINGS`.
    value : `float`, optional
        What it reached, or had reached when it was stopped. Finite.
    values : `Dict[str, Any]`
        Of the sweep's parameters.
    seconds : `float`, optional
        What it took.
    reason : `str`
        Why it failed; empty otherwise.
    """

    number: int
    ending: str
    value: Optional[float]
    values: Dict[str, Any]
    seconds: Optional[float]
    reason: str


class KeptSearch(NamedTuple):
    """
    A search.

    # Parameters

    folder : `Path`
        Where it is.
    method : `str`
        By which values are drawn.
    metric : `Metric`
        What is searched by.
    parameters : `Dict[str, str]`
        What each may be, as Python writes it.
    trials : `List[KeptTrial]`
        In the order of their numbers.
    """

    folder: Path
    method: str
    metric: Metric
    parameters: Dict[str, str]
    trials: List[KeptTrial]

    def finished(self) -> List[KeptTrial]:
        """The trials that came to their end, the best first."""
        sign = -1 if self.metric.is_maximized else 1
        done = [one for one in self.trials if one.ending == "finished" and one.value is not None]
        return sorted(done, key=lambda one: sign * (one.value or 0.0))


def holds_search(folder: Path) -> bool:
    """Whether a search has begun in this folder."""
    return (folder / STUDY_FILE).is_file()


def read_search(folder: Path) -> KeptSearch:
    """
    # Parameters

    folder : `Path`
        Of a search, which may still be at work.

    # Returns

    `KeptSearch`
        What it has kept until now.

    # Raises

    ConfigurationError
        If Optuna is not installed, or the folder's study can't be read or makes no sense.
    """
    if find_spec("optuna") is None:
        raise ConfigurationError(
            f"{folder / STUDY_FILE}: to read it takes Optuna, which is not installed: pip install "
            "'optuna>=4'"
        )
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    file = (folder / STUDY_FILE).absolute()
    try:
        _check(file)
        storage = optuna.storages.RDBStorage(
            "sqlite://",
            engine_kwargs={"creator": lambda: _opened(file)},
            skip_table_creation=True,
        )
        study = optuna.load_study(study_name="search", storage=storage)
        trials, searched = study.get_trials(deepcopy=False), study.user_attrs.get("searched")
        storage.engine.dispose()
    # KeyError: Optuna finds no study. RuntimeError: another version of Optuna wrote the file.
    except (
        *(SQLAlchemyError, optuna.exceptions.OptunaError, sqlite3.Error),
        *(OSError, KeyError, RuntimeError, TypeError, ValueError),
    ) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise ConfigurationError(
            f"{folder / STUDY_FILE}: expected what `allennlp elmo-search` keeps, but: {reason}"
        ) from None
    return _described(folder, searched, [_kept(trial) for trial in trials])


def _opened(file: Path) -> sqlite3.Connection:
    """The database, which can't be written to."""
    return sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)


def _check(file: Path) -> None:
    """Refuses what would run more than a look at tables, and what is too large."""
    if file.stat().st_size > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES // 2**20} MiB")
    with closing(_opened(file)) as database:
        rows = database.execute("select name from sqlite_master where type in ('view', 'trigger')")
        if rows.fetchone() is not None:
            raise ValueError("it holds more than tables")


def _described(folder: Path, searched: Any, trials: List[KeptTrial]) -> KeptSearch:
    known = searched if isinstance(searched, dict) else {}
    metric, parameters = known.get("metric"), known.get("set of parameters")
    if (
        not isinstance(metric, list)
        or list(map(type, metric)) != [str, bool]
        or not isinstance(parameters, dict)
    ):
        raise ConfigurationError(
            f"{folder / STUDY_FILE}: expected a search that names its metric and its parameters"
        )
    shown = {str(name): str(value) for name, value in parameters.items()}
    return KeptSearch(folder, str(known.get("method", "")), Metric(*metric), shown, trials)


def _kept(trial: "FrozenTrial") -> KeptTrial:
    values = trial.user_attrs.get("values")
    value = trial.value
    return KeptTrial(
        trial.number,
        ENDINGS[trial.state.name],
        value if value is not None and math.isfinite(value) else None,
        values if isinstance(values, dict) else {},
        None if trial.duration is None else trial.duration.total_seconds(),
        str(trial.user_attrs.get("reason", "")),
    )
