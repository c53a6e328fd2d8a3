"""The study of a search, stored by Optuna in a file; its outcome, and what its folder keeps."""

import json
import math
import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple
from urllib.parse import quote

from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import CONFIG_NAME

from elmo_scratch.data.corpus.shards import list_shards
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.identity import identity_of
from elmo_scratch.interop.archives.archive import archive_files
from elmo_scratch.interop.reading import files_of_folder
from elmo_scratch.search.sweep import Choice, Metric, Parameter, Sweep

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial
if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial


WRITTEN = "keep_layers"
"""The name of a setting whose file is written by trainings themselves."""

DATA = "data_path"
"""The end of the names of settings that may be file patterns."""


def named_files(settings: Any, name: str = "") -> Iterator[Path]:
    """
    Yields the files that a training with these settings reads: files that a setting names, files
    that match its pattern, and the archive's files of an output folder that it names, such as a
    biLM's. `settings` is a config or a part of one, `name` the part's name.
    """
    if isinstance(settings, dict):
        for key, setting in settings.items():
            if key.rpartition(".")[2] != WRITTEN:
                yield from named_files(setting, key)
    elif isinstance(settings, (list, tuple)):
        for setting in settings:
            yield from named_files(setting, name)
    elif isinstance(settings, str):
        with suppress(OSError, ValueError):  # the text can't be the name of a file
            yield from _files_of(settings, may_be_pattern=name.endswith(DATA))


def _files_of(name: str, may_be_pattern: bool) -> Iterator[Path]:
    """Yields the files that a text names, if any."""
    path = Path(os.path.expanduser(name))
    if path.is_file():
        yield path
    elif files := files_of_folder(path):
        yield from files
    elif (path / CONFIG_NAME).is_file():
        yield from archive_files(path)
    elif may_be_pattern and "://" not in name:
        with suppress(ConfigurationError):  # each training reports it
            yield from list_shards(name)


BEST_FILE = "best.json"


def write_best(study: "optuna.Study", overrides: Dict[str, Any], folder: Path) -> Path:
    """
    Writes the overrides of the best trial, as `allennlp train` takes them.

    # Parameters

    study : `optuna.Study`
        The study with all trials.
    overrides : `Dict[str, Any]`
        The overrides that all trials share.
    folder : `Path`
        The folder to write `best.json` into.

    # Returns

    `Path`
        The file.

    # Raises

    ConfigurationError
        If no training completed.
    """
    best = _best_first(study)[0]
    if best.state.name != "COMPLETE":
        reason = best.user_attrs.get("reason", "").splitlines() or ["no word of why"]
        raise ConfigurationError(
            f"no training came to its end; {folder / f'trial-{best.number}.log'} says: {reason[-1]}"
        )
    with atomic_write(folder / BEST_FILE) as part:
        content = json.dumps({**overrides, **best.user_attrs["values"]}, indent=2)
        part.write_text(f"{content}\n", encoding="utf-8")
    return folder / BEST_FILE


def table(study: "optuna.Study", sweep: Sweep) -> str:
    """
    # Parameters

    study : `optuna.Study`
        The study with all trials.
    sweep : `Sweep`
        The sweep, which names the columns.

    # Returns

    `str`
        A table in Markdown: the best trials first, then those that were stopped early or failed.
    """
    heads = ["trial", sweep.metric.name, *short_names(list(sweep.parameters)), ""]
    rows = [heads, ["---:", "---:", *["---"] * (len(heads) - 2)]]
    for trial in _best_first(study):
        values = trial.user_attrs.get("values", {})
        rows.append(
            [str(trial.number), "" if trial.value is None else _shown(trial.value)]
            + [_shown(values[name]) if name in values else "" for name in sweep.parameters]
            + [_ended(trial)]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths))} |" for row in rows
    )


def _best_first(study: "optuna.Study") -> List["FrozenTrial"]:
    """Returns all trials: completed ones from best to worst, then pruned and failed ones."""
    sign = -1 if study.direction.name == "MAXIMIZE" else 1
    order = ["COMPLETE", "PRUNED", "FAIL"]

    def place(trial: "FrozenTrial") -> Any:
        reached = trial.value if trial.state.name == "COMPLETE" else None
        return order.index(trial.state.name), sign * (reached or 0.0), trial.number

    return sorted((trial for trial in study.trials if trial.state.name in order), key=place)


def _ended(trial: "FrozenTrial") -> str:
    """Says how a trial ended, if it did not complete."""
    if trial.state.name == "PRUNED":
        return f"stopped after epoch {trial.last_step}"
    return "failed" if trial.state.name == "FAIL" else ""


def short_names(names: Sequence[str]) -> List[str]:
    """Shortens dotted names to their last two parts, where these are unique."""
    short = [".".join(name.split(".")[-2:]) for name in names]
    return [one if short.count(one) == 1 else name for one, name in zip(short, names)]


def _shown(value: Any) -> str:
    """Formats a value as a cell of a table."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value)


STUDY_FILE = "study.db"


@contextmanager
def study_errors(folder: Path) -> Iterator[None]:
    """
    Raises `ConfigurationError` if the study can't be written or read in the block, for instance
    because the disk is full.
    """
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        raise ConfigurationError(
            f"{folder / STUDY_FILE}: can't be written or read: {str(error).splitlines()[0]}. Make "
            "room, if that is why; what was tried is kept, and the same command goes on."
        ) from None


def open_study(folder: Path, sweep: Sweep, config: Dict[str, Any], seed: int) -> "optuna.Study":
    """
    Opens the study of a folder, or begins one. `config` is what all trials train, before the
    sweep's parameters change it. Raises `ConfigurationError` if Optuna is not installed, can't
    read the file, or if the folder holds another search.
    """
    if find_spec("optuna") is None:
        raise ConfigurationError(
            "a search needs Optuna, which is not installed: pip install 'optuna>=4'"
        )
    import optuna
    from sqlalchemy import URL
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        # A path within a URL ends at the first `?`, which SQLAlchemy 2.0 doesn't quote.
        file = (folder / STUDY_FILE).absolute().as_uri()
        url = URL.create("sqlite", database=file, query={"uri": "true"}).render_as_string()
        study = optuna.create_study(
            study_name="search",
            storage=url,
            direction="maximize" if sweep.metric.is_maximized else "minimize",
            pruner=optuna.pruners.NopPruner()
            if sweep.halving is None
            else optuna.pruners.SuccessiveHalvingPruner(sweep.halving.first, sweep.halving.factor),
            load_if_exists=True,
        )
    # RuntimeError: another version of Optuna wrote the file.
    except (SQLAlchemyError, optuna.exceptions.OptunaError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigurationError(
            f"{folder / STUDY_FILE}: expected a study that Optuna keeps, but: {reason}"
        ) from None
    # A search that goes on must not draw the same numbers again.
    seed = (seed + num_tried(study)) % 2**32
    if sweep.method == "bayes":
        study.sampler = optuna.samplers.TPESampler(seed=seed)
    else:
        study.sampler = optuna.samplers.RandomSampler(seed=seed)
    searched = _in_json(sweep, config)
    kept = study.user_attrs.get("searched", searched)
    for part, content in searched.items():
        if kept.get(part, content) != content:
            raise ConfigurationError(
                f"{folder}: holds a search with another {part}, which can't go on with this one. "
                "Choose another folder."
            )
    study.set_user_attr("searched", searched)
    return study


def _in_json(sweep: Sweep, config: Dict[str, Any]) -> Dict[str, Any]:
    """Returns, in the types of JSON, all that decides whether two trials can be compared."""
    choices = {name: _choices(parameter) for name, parameter in sweep.parameters.items()}
    files = sorted({*named_files(config), *named_files(choices)})
    return {
        "config": config,
        "content of the files that the config names": [identity_of([file]) for file in files],
        "method": sweep.method,
        "metric": list(sweep.metric),
        "set of parameters": {name: repr(value) for name, value in sweep.parameters.items()},
    }


def _choices(parameter: Parameter) -> Tuple[Any, ...]:
    """Returns the values of a `Choice`. Other parameters are numbers, which name no file."""
    return parameter.values if isinstance(parameter, Choice) else ()


def next_trial(study: "optuna.Study", sweep: Sweep) -> "optuna.Trial":
    """
    Returns a new trial. The method grid goes through its cells by the names of the parameters, not
    by their order in the sweep file, which may change before a search goes on.
    """
    number = num_tried(study)
    # A search that was stopped just here has left a waiting trial.
    if sweep.method == "grid" and number == len(study.trials):
        study.enqueue_trial(_cell(sweep, number))
    return study.ask()


def _cell(sweep: Sweep, number: int) -> Dict[str, Any]:
    """Returns the values of a cell of the grid; the alphabetically last name varies fastest."""
    cell = {}
    for name in sorted(sweep.parameters, reverse=True):
        values = sweep.parameters[name].grid() or ()
        number, place = divmod(number, len(values))
        cell[name] = values[place]
    return cell


def num_tried(study: "optuna.Study") -> int:
    """Returns the number of trials that have begun."""
    return sum(trial.state.name != "WAITING" for trial in study.trials)


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
