"""What a search has tried so far, in a file that Optuna keeps."""

from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, Tuple

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.identity import identity_of
from elmo_scratch.search.named_files import named_files
from elmo_scratch.search.parameters import Choice, Parameter
from elmo_scratch.search.sweep import Sweep

if TYPE_CHECKING:
    import optuna

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
