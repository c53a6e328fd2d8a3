"""AllenNLP's own subcommands `train`, `evaluate` and `predict`."""

import functools
from argparse import Namespace
from importlib import import_module
from typing import Any

from elmo_scratch_compat.predictions import name_bad_lines, write_whole_file
from elmo_scratch_compat.training import share_processors


def train_plainly(train: Any) -> None:
    """Patches `allennlp train`."""
    share_processors(train)
    speak_plainly(train.Train)


def evaluate_plainly(evaluate: Any) -> None:
    """Patches `allennlp evaluate`."""
    speak_plainly(evaluate.Evaluate)


def predict_plainly(predict: Any) -> None:
    """Patches `allennlp predict`."""
    write_whole_file(predict)
    name_bad_lines(predict)
    speak_plainly(predict.Predict)


def speak_plainly(command: Any) -> None:
    """
    A mistake in a config, a file or the command line ends in 20 to 200 lines, the last of which
    says what was wrong. A training ends in a wall of JSON, an evaluation without a word on its
    result, and an interruption in a traceback. `--verbose` and `--debug` bring that back.
    """
    add_subparser = command.add_subparser

    @functools.wraps(add_subparser)
    def add_subparser_with_options(self: Any, parser: Any) -> Any:
        subparser = add_subparser(self, parser)
        subparser.add_argument(
            "--verbose", action="store_true", help="print all that the log file gets"
        )
        subparser.add_argument(
            "--debug", action="store_true", help="show the traceback of an error"
        )
        run = subparser.get_default("func")

        def run_plainly(args: Namespace) -> Any:
            # The plugin's half: it knows the results of its models.
            plain = import_module("elmo_scratch.commands.plain_commands")
            return plain.run_plainly(self.name, run, args)

        subparser.set_defaults(func=run_plainly)
        return subparser

    command.add_subparser = add_subparser_with_options
