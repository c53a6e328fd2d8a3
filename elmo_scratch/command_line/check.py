"""All subcommands, and what is read before AllenNLP is there to read it."""

import argparse
import sys
from typing import Dict, Sequence

from elmo_scratch.command_line.command_line import CommandLine
from elmo_scratch.command_line.elmo import ELMO, ELMO_JOIN
from elmo_scratch.command_line.elmo_explore import ELMO_EXPLORE
from elmo_scratch.command_line.elmo_export import ELMO_EXPORT
from elmo_scratch.command_line.elmo_report import ELMO_REPORT
from elmo_scratch.command_line.elmo_score import ELMO_SCORE
from elmo_scratch.command_line.elmo_search import ELMO_SEARCH
from elmo_scratch.command_line.elmo_train import ELMO_TRAIN
from elmo_scratch.command_line.elmo_vectors import ELMO_VECTORS

COMMANDS: Dict[str, CommandLine] = {
    command.name: command
    for command in (
        ELMO,
        ELMO_EXPLORE,
        ELMO_EXPORT,
        ELMO_JOIN,
        ELMO_REPORT,
        ELMO_SCORE,
        ELMO_SEARCH,
        ELMO_TRAIN,
        ELMO_VECTORS,
    )
}
"""The command lines of all subcommands, by their names."""


def check_words(words: Sequence[str]) -> None:
    """
    Reads what was typed after `allennlp`, if it begins with one of `COMMANDS`.

    # Raises

    SystemExit
        If that asks for help, which is printed, or if it has a mistake, which is told on stderr.
    """
    if not words or words[0] not in COMMANDS:
        return
    command = COMMANDS[words[0]]
    parser = argparse.ArgumentParser(prog="allennlp")
    subparser = command.add_to(parser.add_subparsers())
    # As AllenNLP adds it to all subcommands that want plugins.
    subparser.add_argument(
        "--include-package",
        type=str,
        action="append",
        default=[],
        help="additional packages to include",
    )
    mistake = command.mistake_in(parser.parse_args(words))
    if mistake:
        sys.exit(f"allennlp {command.name}: error: {mistake}")
