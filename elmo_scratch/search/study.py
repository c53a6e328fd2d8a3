"""The study of a search, in a file that Optuna keeps, and its outcome."""

import json
import os
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Sequence, Tuple

from allennlp.common.checks import ConfigurationError
from allennlp.models.archival import CONFIG_NAME

from elmo_scratch.data.corpus.shards import list_shards
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.identity import identity_of
from elmo_scratch.interop.archives.archive import archive_files
from elmo_scratch.search.sweep import Choice, Parameter, Sweep

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

if TYPE_CHECKING:
    import optuna


WRITTEN = "keep_layers"
"""A setting that names a file which trainings themselves write to."""

DATA = "data_path"
"""Names of settings that may be patterns of files end with it."""


def named_files(settings: Any, name: str = "") -> Iterator[Path]:
    """
    Yields the files whose content decides what a training with these settings reads: those named,
    those that a pattern stands for, and of the output folder of a training, such as that of a
    biLM, what goes into its archive.

    # Parameters

    settings : `Any`
        A config, or a part of one.
    name : `str`, optional (default = `""`)
        The name of the part.
    """
    if isinstance(settings, dict):
        for key, setting in settings.items():
            if key.rpartition(".")[2] != WRITTEN:
                yield from named_files(setting, key)
    elif isinstance(settings, (list, tuple)):
        for setting in settings:
            yield from named_files(setting, name)
    elif isinstance(settings, str):
        with suppress(OSError, ValueError):  # what no file can be called
            yield from _files_of(settings, may_be_pattern=name.endswith(DATA))


def _files_of(name: str, may_be_pattern: bool) -> Iterator[Path]:
    """What a text names, if anything."""
    path = Path(os.path.expanduser(name))
    if path.is_file():
        yield path
    elif (path / CONFIG_NAME).is_file():
        yield from archive_files(path)
    elif may_be_pattern and "://" not in name:
        with suppress(ConfigurationError):  # each training says it
            yield from list_shards(name)


BEST_FILE = "best.json"


def write_best(study: "optuna.Study", overrides: Dict[str, Any], folder: Path) -> Path:
    """
    Writes the overrides of the best trial, as `allennlp train` takes them.

    # Parameters

    study : `optuna.Study`
        All that was tried.
    overrides : `Dict[str, Any]`
        Those of all trials.
    folder : `Path`
        Where the file shall be.

    # Returns

    `Path`
        The file.

    # Raises

    ConfigurationError
        If no training came to its end.
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
        All that was tried.
    sweep : `Sweep`
        What was searched for.

    # Returns

    `str`
        A table in Markdown: the best trials first, then those that were stopped early or failed.
    """
    heads = ["trial", sweep.metric.name, *_short(list(sweep.parameters)), ""]
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
    """All trials: those that came to their end by what they reached, then the others."""
    sign = -1 if study.direction.name == "MAXIMIZE" else 1
    order = ["COMPLETE", "PRUNED", "FAIL"]

    def place(trial: "FrozenTrial") -> Any:
        reached = trial.value if trial.state.name == "COMPLETE" else None
        return order.index(trial.state.name), sign * (reached or 0.0), trial.number

    return sorted((trial for trial in study.trials if trial.state.name in order), key=place)


def _ended(trial: "FrozenTrial") -> str:
    """What a reader should know of how it ended."""
    if trial.state.name == "PRUNED":
        return f"stopped after epoch {trial.last_step}"
    return "failed" if trial.state.name == "FAIL" else ""


def _short(names: Sequence[str]) -> List[str]:
    """The last two parts of dotted names, where that tells them apart."""
    short = [".".join(name.split(".")[-2:]) for name in names]
    return [one if short.count(one) == 1 else name for one, name in zip(short, names)]


def _shown(value: Any) -> str:
    """A value as a cell of a table."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value)


STUDY_FILE = "study.db"


@contextmanager
def study_errors(folder: Path) -> Iterator[None]:
    """
    Tells what Optuna can't write or read in the block: of a full disk, above all.

    # Raises

    ConfigurationError
        If the study can't be written or read any more.
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
    Opens the study of a folder, or begins one.

    # Parameters

    folder : `Path`
        Where the file is, or shall be.
    sweep : `Sweep`
        What is searched for.
    config : `Dict[str, Any]`
        What all trials train, but for the parameters of the sweep.
    seed : `int`
        Of the random numbers.

    # Returns

    `optuna.Study`

    # Raises

    ConfigurationError
        If Optuna is not installed, the file there is not its own, or the study there is that of
        another search.
    """
    if find_spec("optuna") is None:
        raise ConfigurationError(
            "a search needs Optuna, which is not installed: pip install 'optuna>=4'"
        )
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        study = optuna.create_study(
            study_name="search",
            storage=f"sqlite:///{folder / STUDY_FILE}",
            direction="maximize" if sweep.metric.is_maximized else "minimize",
            pruner=optuna.pruners.NopPruner()
            if sweep.halving is None
            else optuna.pruners.SuccessiveHalvingPruner(sweep.halving.first, sweep.halving.factor),
            load_if_exists=True,
        )
    # RuntimeError: the file is that of another version of Optuna.
    except (SQLAlchemyError, optuna.exceptions.OptunaError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigurationError(
            f"{folder / STUDY_FILE}: expected a study that Optuna keeps, but: {reason}"
        ) from None
    # Started again it must not draw the same numbers again.
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
    """All that decides whether two trials can be compared."""
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
    """The values that a parameter has one of; none for numbers, which name no file."""
    return parameter.values if isinstance(parameter, Choice) else ()


def next_trial(study: "optuna.Study", sweep: Sweep) -> "optuna.Trial":
    """
    # Returns

    `optuna.Trial`
        A new one. With the method grid the first has the first of all values, and so on, whatever
        the order of the parameters in the sweep file: it may change before a search goes on.
    """
    number = num_tried(study)
    # One that waits already was left by a search that was stopped just here.
    if sweep.method == "grid" and number == len(study.trials):
        study.enqueue_trial(_cell(sweep, number))
    return study.ask()


def _cell(sweep: Sweep, number: int) -> Dict[str, Any]:
    """One place of the grid: from each to the next the value of the last name changes first."""
    cell = {}
    for name in sorted(sweep.parameters, reverse=True):
        values = sweep.parameters[name].grid() or ()
        number, place = divmod(number, len(values))
        cell[name] = values[place]
    return cell


def num_tried(study: "optuna.Study") -> int:
    """
    # Returns

    `int`
        How many trials have begun.
    """
    return sum(trial.state.name != "WAITING" for trial in study.trials)
