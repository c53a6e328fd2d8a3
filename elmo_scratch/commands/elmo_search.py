"""
`allennlp elmo-search`: looks for the best settings of a config by training it many times.
"""

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, List

from allennlp.commands.subcommand import Subcommand

from elmo_scratch.command_line.elmo_search import ELMO_SEARCH
from elmo_scratch.commands.command_error import PackageSubcommand, command_errors
from elmo_scratch.files.atomic import check_folder_place
from elmo_scratch.search import Search, interrupted_by_signals, read_sweep, table, write_best
from elmo_scratch.terminal import closing_lines, counted, sparkline

if TYPE_CHECKING:
    import optuna

MOST_TRIALS = 10
"""Rows of the table of trials; `allennlp elmo-report` shows all."""

ENDINGS = {"COMPLETE": "finished", "PRUNED": "stopped early", "FAIL": "failed"}
"""How trainings end: Optuna's names, and those for people."""


@Subcommand.register("elmo-search")
class ElmoSearch(PackageSubcommand):
    """Looks for the best settings of a config; see `allennlp elmo-search --help`."""

    command_line = ELMO_SEARCH

    def run(self, args: argparse.Namespace) -> None:
        packages = [word for name in args.include_package for word in ("--include-package", name)]
        way_on = "the same command goes on"
        with (
            command_errors("elmo-search", args.serialization_dir, way_on, is_verbose=args.verbose),
            interrupted_by_signals(),
        ):
            check_folder_place(Path(args.serialization_dir))
            sweep = read_sweep(Path(args.sweep_file))
            # Processes left by a search that was killed are recognized by the absolute path.
            folder = Path(os.path.realpath(args.serialization_dir))
            search = Search(
                sweep, Path(args.config_file), folder, args.overrides, args.seed, arguments=packages
            )
            study = search.run(args.trials, args.jobs)
            print("\n".join(_shortened(table(study, sweep).splitlines())))
            write_best(study, search.overrides, folder)
        print("\n".join(_closing(study, sweep.metric.name, args.serialization_dir)))


def _shortened(table: List[str]) -> List[str]:
    """The head of a table of trials, its first rows, and how many more there are."""
    last = 2 + MOST_TRIALS
    return table if len(table) <= last else [*table[:last], f"and {len(table) - last} more"]


def _closing(study: "optuna.Study", metric: str, folder: str) -> List[str]:
    """Returns the lines that tell what was reached, where it lies, and what to type next."""
    best, given = study.best_trial, Path(folder)
    states = [trial.state.name for trial in study.trials]
    endings = [f"{states.count(name)} {told}" for name, told in ENDINGS.items() if name in states]
    finished = [trial.value for trial in study.trials if trial.state.name == "COMPLETE"]
    values = [value for value in finished if value is not None]
    course = f"  {sparkline(values)}  over the finished ones" if len(values) > 1 else ""
    archive = given / f"trial-{best.number}" / "model.tar.gz"
    return closing_lines(
        [
            f"{counted(len(states), 'training')}: {', '.join(endings)}",
            f"the best is trial {best.number}: {metric} {best.value:.4g}{course}",
        ],
        {"model": archive, "overrides": given / "best.json"},
        [
            f"allennlp evaluate {shlex.quote(str(archive))} TEXTS",
            f"allennlp elmo-report {shlex.quote(folder)} -o search.html",
        ],
    )
