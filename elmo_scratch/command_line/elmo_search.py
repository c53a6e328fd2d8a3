"""The arguments of `allennlp elmo-search`."""

import argparse

from elmo_scratch.command_line.command_line import CommandLine

DESCRIPTION = """
Trains a config many times, each time with other values of the parameters that a sweep file of
Weights & Biases names, and tells which were the best. No account is needed: Optuna chooses the
values, and keeps what has been tried in FOLDER/study.db. Each training has a folder
FOLDER/trial-N and a log beside it. Stopped, the same command goes on where it was. In the end the
overrides of the best training are in FOLDER/best.json.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    parser.add_argument(
        "sweep_file",
        type=str,
        help="a sweep file of Weights & Biases, in YAML: `method` (grid, random or bayes), "
        "`metric`, `parameters` and, if wished, `run_cap` and `early_terminate`",
    )
    parser.add_argument("config_file", type=str, help="the config to train")
    parser.add_argument(
        "-s",
        "--serialization-dir",
        type=str,
        required=True,
        metavar="FOLDER",
        help="the folder to write to, made if it doesn't exist",
    )
    parser.add_argument(
        "--trials",
        type=int,
        help="how many trainings there shall be in the end (default: the file's `run_cap`, or "
        "the whole grid)",
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=1,
        help="how many are trained at a time, on the same processor or GPU",
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument(
        "-o",
        "--overrides",
        type=str,
        default="",
        help="what else is different from the config, in all trainings: JSON as for "
        "`allennlp train`",
    )


ELMO_SEARCH = CommandLine(
    "elmo-search",
    "Look for the best settings of a config by training it many times.",
    DESCRIPTION,
    add_arguments,
)
"""The command line of `allennlp elmo-search`."""
