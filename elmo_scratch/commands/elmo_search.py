"""
`allennlp elmo-search`: looks for the best settings of a config by training it many times.
"""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.search import Search, interrupted_by_signals, read_sweep, table, write_best

DESCRIPTION = """
Trains a config many times, each time with other values of the parameters that a sweep file of
Weights & Biases names, and tells which were the best. No account is needed: Optuna chooses the
values, and keeps what has been tried in FOLDER/study.db. Each training has a folder
FOLDER/trial-N and a log beside it. Stopped, the same command goes on where it was. In the end the
overrides of the best training are in FOLDER/best.json.
"""


@Subcommand.register("elmo-search")
class ElmoSearch(Subcommand):
    """Looks for the best settings of a config; see `allennlp elmo-search --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            help="Look for the best settings of a config by training it many times.",
        )
        subparser.add_argument(
            "sweep_file",
            type=str,
            help="a sweep file of Weights & Biases, in YAML: `method` (grid, random or bayes), "
            "`metric`, `parameters` and, if wished, `run_cap` and `early_terminate`",
        )
        subparser.add_argument("config_file", type=str, help="the config to train")
        subparser.add_argument(
            "-s",
            "--serialization-dir",
            type=str,
            required=True,
            metavar="FOLDER",
            help="the folder to write to, made if it doesn't exist",
        )
        subparser.add_argument(
            "--trials",
            type=int,
            help="how many trainings there shall be in the end (default: the file's `run_cap`, or "
            "the whole grid)",
        )
        subparser.add_argument(
            "--jobs",
            type=int,
            default=1,
            help="how many are trained at a time, on the same processor or GPU",
        )
        subparser.add_argument("--seed", type=int, default=0, help="of what is drawn")
        subparser.add_argument(
            "-o",
            "--overrides",
            type=str,
            default="",
            help="what else is different from the config, in all trainings: JSON as for "
            "`allennlp train`",
        )
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
        print(f"\nThe best one's overrides: {write_best(study, search.overrides, folder)}")
