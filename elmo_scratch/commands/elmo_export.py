"""
`allennlp elmo-export`: writes a trained biLM as the files that other implementations of ELMo read,
or as a model folder.
"""

import argparse
import shlex
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_scratch.command_line.elmo_export import ELMO_EXPORT
from elmo_scratch.commands.command_error import PackageSubcommand, command_errors
from elmo_scratch.interop import export_bilm, export_model_folder
from elmo_scratch.terminal import closing_lines, counted
from elmo_scratch_compat.strangers import trusted

FILES = {
    "official": {
        "options": "options.json",
        "weights": "weights.hdf5",
        "vocabulary": "vocab.txt",
    },
    "safetensors": {
        "config": "config.json",
        "weights": "model.safetensors",
        "vocabulary": "vocab.txt",
        "model card": "README.md",
    },
}
"""The files of each format."""


@Subcommand.register("elmo-export")
class ElmoExport(PackageSubcommand):
    """Writes a trained biLM for others; see `allennlp elmo-export --help`."""

    command_line = ELMO_EXPORT

    def run(self, args: argparse.Namespace) -> None:
        is_official = args.format == "official"
        errors = command_errors("elmo-export", args.folder, is_verbose=args.verbose)
        with errors, trusted(args.trust):
            if is_official:
                bilm = export_bilm(args.archive_file, args.folder, overwrite=args.overwrite)
            else:
                bilm = export_model_folder(
                    args.archive_file,
                    args.folder,
                    dtype=args.dtype or "float32",
                    overwrite=args.overwrite,
                )
        folder = Path(args.folder)
        places = {name: folder / file for name, file in FILES[args.format].items()}
        reads_characters = bilm.token_encoder.reads_characters
        unit = "characters" if reads_characters else "words"
        size = counted(sum(weight.numel() for weight in bilm.parameters()), "weight")
        model = ["--weight-file", args.folder]
        if is_official and reads_characters:
            model = [
                "--options-file",
                str(places["options"]),
                "--weight-file",
                str(places["weights"]),
            ]
        elif is_official:
            # Official files of words don't say whether words are looked up in lower case.
            model = ["--weight-file", args.archive_file]
        lines = closing_lines(
            [f"{counted(bilm.num_layers, 'layer')} of {bilm.width:,} numbers over {unit}, {size}"],
            {name: place for name, place in places.items() if place.exists()},
            [shlex.join(["allennlp", "elmo", "TEXT", "layers.hdf5", "--all", *model])],
        )
        print("\n".join(lines))
