"""
`allennlp elmo-join`: joins the files that several processes of `allennlp elmo --shard` wrote.
"""

import argparse
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.export import join_shards

DESCRIPTION = """
Writes OUTPUT from OUTPUT.1-of-N ... OUTPUT.N-of-N, which `allennlp elmo --shard I/N` wrote beside
it. The result is the same as if one process had written it all.
"""


@Subcommand.register("elmo-join")
class ElmoJoin(Subcommand):
    """Joins the files of shards; see `allennlp elmo-join --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            help="Make one file of the files that `allennlp elmo --shard` wrote.",
        )
        subparser.add_argument("output_file", type=str, help="the HDF5 file to write")
        subparser.add_argument(
            "--remove-shards", action="store_true", help="remove their files when OUTPUT is whole"
        )
        subparser.add_argument(
            "--overwrite", action="store_true", help="replace another file of that name"
        )
        subparser.set_defaults(func=join_from_args)
        return subparser


def join_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    with command_errors("elmo-join", args.output_file):
        join_shards(Path(args.output_file), remove=args.remove_shards, overwrite=args.overwrite)
