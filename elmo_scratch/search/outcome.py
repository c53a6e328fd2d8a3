"""What a search has found, to read and to train again."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Sequence

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.atomic import whole_file
from elmo_scratch.search.sweep import Sweep

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

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
    with whole_file(folder / BEST_FILE) as part:
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
