"""The arguments of one subcommand."""

import argparse
from typing import Any, Callable, Dict, NamedTuple

TRUST: Dict[str, Any] = {
    "action": "store_true",
    "help": "the archive is from somebody you trust: its config may name any class of an installed "
    "package, and have it fetch files",
}
"""The argument `--trust` of commands that read a model."""

TOKENIZE: Dict[str, Any] = {
    "type": str,
    "metavar": "LANGUAGE",
    "help": "cut the sentences into words by spaCy's rules for this language, such as en, de or "
    "hi; by default words stand between white space",
}
"""The argument `--tokenize` of `elmo`, `elmo-explore` and `elmo-train`."""


def no_mistake(args: argparse.Namespace) -> str:
    """Returns `""`: any arguments of the subcommand go together."""
    return ""


class CommandLine(NamedTuple):
    """
    The arguments of a subcommand.

    # Parameters

    name : `str`
        The word after `allennlp`.
    summary : `str`
        A line for the list of all subcommands.
    description : `str`
        For its own help.
    add_arguments : `Callable[[argparse.ArgumentParser], None]`
        Adds them to a parser.
    mistake_in : `Callable[[argparse.Namespace], str]`, optional
        What is wrong with arguments that don't go together, in a sentence; `""` if nothing is. No
        file is looked at.
    """

    name: str
    summary: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    mistake_in: Callable[[argparse.Namespace], str] = no_mistake

    def add_to(self, subparsers: Any) -> argparse.ArgumentParser:
        """Adds its parser to those of other subcommands."""
        subparser = subparsers.add_parser(
            self.name, description=self.description, help=self.summary
        )
        self.add_arguments(subparser)
        subparser.add_argument(
            "--verbose",
            action="store_true",
            help="print all that this and other packages log, and where an error comes from",
        )
        return subparser
