"""AllenNLP's own subcommands `train`, `evaluate`, `predict` and `push-to-hf`."""

import functools
from argparse import Namespace
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from elmo_scratch_compat.answers import show_answers
from elmo_scratch_compat.predictions import name_bad_lines, write_whole_file
from elmo_scratch_compat.strangers import config_as_data, names_of
from elmo_scratch_compat.training import (
    meet_on_one_network,
    replace_when_training_begins,
    share_processors,
)


def train_plainly(train: Any) -> None:
    """Patches `allennlp train`."""
    share_processors(train)
    meet_on_one_network(train)
    replace_when_training_begins(train)
    speak_plainly(train.Train)


def evaluate_plainly(evaluate: Any) -> None:
    """Patches `allennlp evaluate`."""
    speak_plainly(evaluate.Evaluate)


def predict_plainly(predict: Any) -> None:
    """Patches `allennlp predict`."""
    write_whole_file(predict)
    name_bad_lines(predict)
    show_answers(predict)
    speak_plainly(predict.Predict)


def push_plainly(push_to_hf: Any) -> None:
    """
    Mistakes in `allennlp push-to-hf` end in a traceback, one without a token among them, and a push
    in no word on where the model lies.
    """

    def push(args: Namespace) -> None:
        # The plugin's half: how its commands end.
        command_errors = import_module("elmo_scratch.commands.command_error").command_errors
        closing_lines = import_module("elmo_scratch.terminal").closing_lines
        source = args.serialization_dir or args.archive_path
        with command_errors("push-to-hf", source):
            print(f"sending {source} to the Hugging Face Hub")
            url = push_to_hf.push_to_hf(
                args.repo_name,
                serialization_dir=args.serialization_dir,
                archive_path=args.archive_path,
                organization=args.organization,
                commit_message=args.commit_message,
                local_repo_path=args.local_repo_path,
            )
        reached = [f"{source} is the newest version of {url.repo_id}"]
        steps = [f"allennlp evaluate hf://{url.repo_id} TEXTS"]
        print("\n".join(closing_lines(reached, {"page": url}, steps)))

    push_to_hf.push = push


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
            plain = import_module("elmo_scratch.commands.command_error")
            # A training's config is the user's own, an archive's may be anybody's, and the loader
            # and the predictor that it names are built when it has been read.
            is_own = "archive_file" not in args
            typed = [getattr(args, "predictor", None), *names_of(getattr(args, "overrides", ""))]
            with nullcontext() if is_own else config_as_data(filter(None, typed)):
                return plain.run_plainly(self.name, run, args)

        subparser.set_defaults(func=run_plainly)
        return subparser

    command.add_subparser = add_subparser_with_options
