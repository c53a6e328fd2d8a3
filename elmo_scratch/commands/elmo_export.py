"""
`allennlp elmo-export`: writes a trained biLM as the files that other implementations of ELMo read.
"""

import argparse

from allennlp.commands.subcommand import Subcommand

from elmo_scratch.command_line.elmo_export import ELMO_EXPORT
from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.interop import export_bilm


@Subcommand.register("elmo-export")
class ElmoExport(Subcommand):
    """Writes a trained biLM as official files; see `allennlp elmo-export --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = ELMO_EXPORT.add_to(parser)
        subparser.set_defaults(func=export_from_args)
        return subparser


def export_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    with command_errors("elmo-export", args.folder):
        export_bilm(args.archive_file, args.folder, overwrite=args.overwrite)
