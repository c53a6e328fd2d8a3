"""
`allennlp elmo-search`: looks for the best settings of a config by training it many times.
"""

import argparse
import shlex
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_scratch.command_line.elmo_search import ELMO_SEARCH
from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.search import Search, interrupted_by_signals, read_sweep, table, write_best
from elmo_scratch.terminal import closing_lines, counted


@Subcommand.register("elmo-search")
class ElmoSearch(Subcommand):
    """Looks for the best settings of a config; see `allennlp elmo-search --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = ELMO_SEARCH.add_to(parser)
        subparser.set_defaults(func=search_from_args)
        return subparser


def search_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    # Processes left by a search that was killed are recognized by the absolute path.
    folder = Path(args.serialization_dir).resolve()
    packages = [word for name in args.include_package for word in ("--include-package", name)]
    way_on = "the same command goes on"
    with command_errors("elmo-search", args.serialization_dir, way_on), interrupted_by_signals():
        sweep = read_sweep(Path(args.sweep_file))
        search = Search(
            sweep, Path(args.config_file), folder, args.overrides, args.seed, arguments=packages
        )
        study = search.run(args.trials, args.jobs)
        print(table(study, sweep))
        write_best(study, search.overrides, folder)
    given = Path(args.serialization_dir)
    best = study.best_trial
    archive = given / f"trial-{best.number}" / "model.tar.gz"
    told = counted(len(study.trials), "training")
    lines = closing_lines(
        [f"{told}, the best: trial {best.number}, {sweep.metric.name} {best.value:.4g}"],
        {"model": archive, "overrides": given / "best.json"},
        [f"allennlp evaluate {shlex.quote(str(archive))} TEXTS"],
    )
    print("\n".join(lines))
