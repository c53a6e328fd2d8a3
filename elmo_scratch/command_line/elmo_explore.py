"""The arguments of `allennlp elmo-explore`."""

import argparse
from typing import Any, Dict

from elmo_scratch.command_line.command_line import TOKENIZE, TRUST, CommandLine

SHOWN: Dict[str, Dict[str, Any]] = {
    "--word": {
        "type": str,
        "help": "print the word's occurrences, some of them with their nearest neighbours in each "
        "layer, and the cosines between them",
    },
    "--output-file": {
        "type": str,
        "metavar": "PAGE",
        "help": "write a page (layers.html) that shows the neighbours of each word of each "
        "sentence, and maps of a word's occurrences, in a browser and without a network",
    },
    "--neighbours": {
        "type": int,
        "metavar": "K",
        "help": "how many for a token (default: 5 in the terminal, 8 on the page)",
    },
    "--labels": {
        "type": str,
        "metavar": "FILE",
        "help": "a label for each line of the text, one a line, by which the page colours its maps",
    },
    "--projector": {
        "type": str,
        "metavar": "FOLDER",
        "help": "write the vectors of one layer and their words for the embedding projector of "
        "TensorBoard (tensorboard --logdir FOLDER)",
    },
    "--layer": {
        "type": int,
        "help": "which layer, for --projector (default: the highest); 0 is the static one",
    },
    "--max-sentences": {
        "type": int,
        "default": 2000,
        "metavar": "N",
        "help": "the page and the projector's files have the first N sentences (default: 2000), "
        "and no more than 65536 tokens",
    },
    "--overwrite": {"action": "store_true", "help": "replace what is there of these names"},
    "--file-friendly-logging": {
        "action": "store_true",
        "help": "print the progress bar on lines of its own, and less often",
    },
}
"""The arguments for what is shown."""

MODEL: Dict[str, Dict[str, Any]] = {
    "--archive": {
        "type": str,
        "help": "the archive of a trained biLM or of a task with one in it (model.tar.gz), a model "
        "folder, or a folder of official files",
    },
    "--options-file": {"type": str, "help": "or an official options.json, a path or an address"},
    "--weight-file": {"type": str, "help": "and its weights.hdf5"},
    "--cuda-device": {
        "type": int,
        "default": -1,
        "help": "the number of a GPU, or -1 for the processor (default)",
    },
    "--tokenize": TOKENIZE,
    "--trust": TRUST,
}
"""The arguments for the biLM that reads a text."""

SHORT = {"--output-file": ["-o"], "--neighbours": ["-k"]}

DESCRIPTION = """
Reads the layers of a text and tells which of its tokens have vectors near to each other. The input
is a file that `allennlp elmo` wrote, with --all to have each layer; or a text, one sentence a line,
its tokens separated by white space, and a model, by which its layers are computed first, each
sentence from zeros. In the static layer neighbours are other words; above it tokens in sentences.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    parser.add_argument("input_file", type=str, help="a file of layers (layers.hdf5), or a text")
    shown = parser.add_argument_group("what is shown")
    model = parser.add_argument_group("the model, for a text")
    for group, arguments in ((shown, SHOWN), (model, MODEL)):
        for name, declared in arguments.items():
            group.add_argument(*SHORT.get(name, []), name, **declared)


def mistake_in(args: argparse.Namespace) -> str:
    """Tells what is missing, makes no sense, or doesn't go together; `""` if nothing does."""
    if args.word is None and args.output_file is None and args.projector is None:
        return (
            "expected something to show: name a word of the text (--word bank), a page to write "
            "(-o layers.html), or a folder for TensorBoard (--projector)"
        )
    for option, number in (
        ("--neighbours", args.neighbours),
        ("--max-sentences", args.max_sentences),
    ):
        if number is not None and number < 1:
            return f"expected {option} of 1 or more, got {number}"
    if args.labels is not None and args.output_file is None and args.projector is None:
        return "--labels colour the maps of a page: name one with -o"
    if args.layer is not None and args.projector is None:
        return "--layer chooses what --projector writes: name a folder for it"
    if args.archive is not None and (args.options_file or args.weight_file):
        return "expected one model: --archive alone, or --options-file and --weight-file"
    return ""


ELMO_EXPLORE = CommandLine(
    "elmo-explore",
    "Show nearest neighbours of words layer by layer, in a terminal or on a page.",
    DESCRIPTION,
    add_arguments,
    mistake_in,
)
"""The command line of `allennlp elmo-explore`."""
