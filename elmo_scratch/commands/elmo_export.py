"""
`allennlp elmo-export`: writes a trained biLM as the files that other implementations of ELMo read.
"""

import argparse

from allennlp.commands.subcommand import Subcommand

from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.interop import export_bilm

DESCRIPTION = """
Writes the biLM of an archive as official files: options.json and weights.hdf5, as AllenNLP's Elmo
and bilm-tf read them, and vocab.txt, the words of its vocabulary, one a line, beginning with <S>,
</S> and <UNK>. All three appear, or none. AllenNLP's Elmo and bilm-tf carry the state of the LSTMs
from batch to batch.
"""


@Subcommand.register("elmo-export")
class ElmoExport(Subcommand):
    """Writes a trained biLM as official files; see `allennlp elmo-export --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            help="Write a trained biLM as the files that other implementations of ELMo read.",
        )
        subparser.add_argument(
            "archive_file",
            type=str,
            help="the archive of a trained biLM (model.tar.gz), or the output folder of a training",
        )
        subparser.add_argument(
            "folder", type=str, help="the folder to write to, made if it doesn't exist"
        )
        subparser.add_argument(
            "--overwrite",
            action="store_true",
            help="replace files of an older export there",
        )
        subparser.set_defaults(func=export_from_args)
        return subparser


def export_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    with command_errors("elmo-export", args.folder):
        export_bilm(args.archive_file, args.folder, overwrite=args.overwrite)
