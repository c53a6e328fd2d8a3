"""The arguments of `allennlp elmo-export`."""

import argparse

from elmo_scratch.command_line.command_line import TRUST, CommandLine

DESCRIPTION = """
Writes a biLM for others. With --format official: options.json and weights.hdf5, as AllenNLP's Elmo
and bilm-tf read them, and vocab.txt, the words of its vocabulary, one a line, beginning with <S>,
</S> and <UNK>. AllenNLP's Elmo and bilm-tf carry the state of the LSTMs from batch to batch. With
--format safetensors: a model folder, as save_pretrained writes it, of config.json,
model.safetensors, README.md, which is a model card, and vocab.txt. With --dtype its weights take
half the space, rounded. All files appear, or none.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    parser.add_argument(
        "archive_file",
        type=str,
        help="the archive of a trained biLM, or of a task with one in it (model.tar.gz), the "
        "output folder of the training, a model folder, or a folder of official files",
    )
    parser.add_argument("folder", type=str, help="the folder to write to, made if it doesn't exist")
    parser.add_argument(
        "--format",
        choices=("official", "safetensors"),
        default="official",
        help="of the files (default: official); safetensors keeps the softmax too",
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "float16", "bfloat16"),
        help="with safetensors: the type of the stored weights (default: float32)",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files of an older export there",
    )
    parser.add_argument("--trust", **TRUST)


def mistake_in(args: argparse.Namespace) -> str:
    """Tells what doesn't go together; `""` if nothing does."""
    if args.dtype is not None and args.format == "official":
        return "--dtype is of model folders: take --format safetensors with it"
    return ""


ELMO_EXPORT = CommandLine(
    "elmo-export",
    "Write a trained biLM as the files that others read, or as a folder to share.",
    DESCRIPTION,
    add_arguments,
    mistake_in,
)
"""The command line of `allennlp elmo-export`."""
