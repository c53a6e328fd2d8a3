"""The arguments of `allennlp elmo-train`."""

import argparse

from elmo_scratch.command_line.command_line import TOKENIZE, CommandLine

CHOICES = ("own_small", "ptb", "small", "original")

DESCRIPTION = """
Pre-trains a biLM over characters on a text of your own, without a config. The size of the text
chooses one of the recipes of training_config/bilm/, which is fitted to the text. The end of each
file is held out for validation, and early in the training a line says how long it takes. FOLDER
then holds the biLM (model.tar.gz), the config that was used (config.json), a report (report.html),
and all else that `allennlp train` writes. The same command goes on where it was stopped.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    parser.add_argument(
        "texts",
        type=str,
        nargs="+",
        metavar="TEXT",
        help="a file with one sentence a line, plain or packed, or a pattern such as 'texts/*.txt'",
    )
    parser.add_argument(
        "-s",
        "--serialization-dir",
        type=str,
        required=True,
        metavar="FOLDER",
        help="the folder to write",
    )
    parser.add_argument(
        "--dev",
        type=str,
        metavar="TEXT",
        help="a text to validate on; by default a twentieth of the sentences is held out",
    )
    parser.add_argument("--tokenize", **TOKENIZE)
    parser.add_argument(
        "--recipe",
        type=str,
        choices=CHOICES,
        help="a config of training_config/bilm/ (default: by the size of the text)",
    )
    parser.add_argument(
        "--epochs", type=int, help="how often the text is read (default: as the recipe has it)"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only say what would be done; nothing is written"
    )


def mistake_in(args: argparse.Namespace) -> str:
    """Refuses a number of epochs below 1; `""` if there is nothing to refuse."""
    if args.epochs is not None and args.epochs < 1:
        return f"expected --epochs of 1 or more, got {args.epochs}"
    return ""


ELMO_TRAIN = CommandLine(
    "elmo-train",
    "Pre-train a biLM on a text of your own, without a config.",
    DESCRIPTION,
    add_arguments,
    mistake_in,
)
"""The command line of `allennlp elmo-train`."""
