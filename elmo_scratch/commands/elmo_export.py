"""
`allennlp elmo-export`: writes a trained biLM as the files that other implementations of ELMo read.
"""

import argparse
import shlex
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_scratch.command_line.elmo_export import ELMO_EXPORT
from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.interop import export_bilm
from elmo_scratch.terminal import closing_lines, counted


@Subcommand.register("elmo-export")
class ElmoExport(Subcommand):
    """Writes a trained biLM as official files; see `allennlp elmo-export --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = ELMO_EXPORT.add_to(parser)
        subparser.set_defaults(func=export_from_args)
        return subparser


def export_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    with command_errors("elmo-export", args.folder, is_verbose=args.verbose):
        bilm = export_bilm(args.archive_file, args.folder, overwrite=args.overwrite)
    folder = Path(args.folder)
    options, weights = folder / "options.json", folder / "weights.hdf5"
    reads_characters = bilm.token_encoder.reads_characters
    unit = "characters" if reads_characters else "words"
    size = counted(sum(weight.numel() for weight in bilm.parameters()), "weight")
    # Official files of words don't say which word has which vector.
    files = ["--options-file", str(options), "--weight-file", str(weights)]
    model = files if reads_characters else ["--weight-file", args.archive_file]
    lines = closing_lines(
        [f"{counted(bilm.num_layers, 'layer')} of {bilm.width:,} numbers over {unit}, {size}"],
        {"options": options, "weights": weights, "vocabulary": folder / "vocab.txt"},
        [shlex.join(["allennlp", "elmo", "TEXT", "layers.hdf5", "--all", *model])],
    )
    print("\n".join(lines))
