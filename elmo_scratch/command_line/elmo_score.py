"""The arguments of `allennlp elmo-score`."""

import argparse
from typing import Any, Dict

from elmo_scratch.command_line.command_line import TRUST, CommandLine

WRITTEN: Dict[str, Dict[str, Any]] = {
    "--output-file": {
        "type": str,
        "metavar": "FILE",
        "help": "write to this file, which appears when it is whole (default: standard output)",
    },
    "--format": {
        "choices": ("table", "jsonl"),
        "help": "table: for people; jsonl: a JSON object for each sentence, and one for the text "
        "(default: table on standard output, jsonl in a file)",
    },
    "--top": {
        "type": int,
        "default": 0,
        "metavar": "K",
        "help": "also the K most likely words at each place, by both directions: the sum of their "
        "log probabilities, renormalised",
    },
    "--overwrite": {"action": "store_true", "help": "replace a file of that name"},
}
"""The arguments for what is written."""

OFFICIAL: Dict[str, Dict[str, Any]] = {
    "--options-file": {
        "type": str,
        "help": "its options.json, a path or an address, if MODEL is weights.hdf5",
    },
    "--softmax-file": {
        "type": str,
        "help": "an HDF5 file with its softmax, softmax/W and softmax/b, which weights.hdf5 lacks "
        "(default: softmax_weights.hdf5 in the folder of MODEL)",
    },
    "--vocab-path": {
        "type": str,
        "help": "its vocabulary file, one word a line in the order of the rows of softmax/W "
        "(default: vocab.txt there)",
    },
}
"""The further files of an official model."""

RUN: Dict[str, Dict[str, Any]] = {
    "--state": {
        "choices": ("reset", "carry"),
        "help": "what a sentence starts from. reset: from zeros. carry: from where the one of the "
        "same place in the batch before ended; --batch-size 1 reads the text as one (default: as "
        "allennlp evaluate reads a text with this archive; carry for official files)",
    },
    "--batch-size": {
        "type": int,
        "help": "sentences a batch, or streams where the archive was evaluated on running text "
        "(default: as allennlp evaluate; 64 for official files)",
    },
    "--cuda-device": {
        "type": int,
        "default": -1,
        "help": "the number of a GPU, or -1 for the processor (default)",
    },
    "--trust": TRUST,
    "--file-friendly-logging": {
        "action": "store_true",
        "help": "print the progress bar on lines of its own, and less often",
    },
}
"""The arguments for how it runs."""

SHORT = {"--output-file": ["-o"]}

DESCRIPTION = """
Tells how likely a language model finds each word of a text, given what stands before it and what
stands after it, in natural logarithms; the perplexity of each sentence; and that of the text, equal
to that of allennlp evaluate. Words out of vocabulary count as the unknown word, as there, and are
marked. The text is read as the archive's dataset reader reads it; with official files it has one
sentence a line, its tokens separated by white space.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    parser.add_argument(
        "model",
        type=str,
        metavar="MODEL",
        help="the archive of a language model (model.tar.gz), a model folder with its softmax, a "
        "folder of official files, official weights (weights.hdf5), or the name of a released "
        "model: original and original-5.5B, which have a softmax, are fetched with it",
    )
    parser.add_argument("input_file", type=str, help="the text; - for standard input")
    written = parser.add_argument_group("what is written")
    official = parser.add_argument_group("further files of an official model")
    run = parser.add_argument_group("how it runs")
    for group, arguments in ((written, WRITTEN), (official, OFFICIAL), (run, RUN)):
        for name, declared in arguments.items():
            group.add_argument(*SHORT.get(name, []), name, **declared)


def mistake_in(args: argparse.Namespace) -> str:
    """Tells what is out of range or doesn't go together; `""` if nothing is."""
    for option, number, least in (("--top", args.top, 0), ("--batch-size", args.batch_size, 1)):
        if number is not None and number < least:
            return f"expected {option} of {least} or more, got {number}"
    if args.overwrite and args.output_file is None:
        return "--overwrite replaces a file: name it with -o"
    files = {"--softmax-file": args.softmax_file, "--vocab-path": args.vocab_path}
    missing = [option for option, file in files.items() if file is None]
    is_needed = args.options_file is not None
    if missing and (is_needed or len(missing) < len(files)):
        beside = "--options-file needs" if is_needed else "a softmax needs"
        return f"{beside} both of {' and '.join(files)}: {missing[0]} is missing"
    return ""


ELMO_SCORE = CommandLine(
    "elmo-score",
    "Tell how likely a language model finds each word of a text, and the text's perplexity.",
    DESCRIPTION,
    add_arguments,
    mistake_in,
)
"""The command line of `allennlp elmo-score`."""
