"""The arguments of `allennlp elmo-export`."""

import argparse

from elmo_scratch.command_line.command_line import CommandLine

DESCRIPTION = """
Writes the biLM of an archive as official files: options.json and weights.hdf5, as AllenNLP's Elmo
and bilm-tf read them, and vocab.txt, the words of its vocabulary, one a line, beginning with <S>,
</S> and <UNK>. All three appear, or none. AllenNLP's Elmo and bilm-tf carry the state of the LSTMs
from batch to batch.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    parser.add_argument(
        "archive_file",
        type=str,
        help="the archive of a trained biLM (model.tar.gz), or the output folder of a training",
    )
    parser.add_argument("folder", type=str, help="the folder to write to, made if it doesn't exist")
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files of an older export there",
    )


ELMO_EXPORT = CommandLine(
    "elmo-export",
    "Write a trained biLM as the files that other implementations of ELMo read.",
    DESCRIPTION,
    add_arguments,
)
"""The command line of `allennlp elmo-export`."""
