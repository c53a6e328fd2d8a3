"""
`allennlp elmo`: writes the vectors of each layer of a biLM for the sentences of a text file.
"""

import argparse
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Tuple

import numpy
from allennlp.commands.subcommand import Subcommand
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm
from allennlp.common.util import lazy_groups_of

from elmo_scratch.data.text_lines import text_lines
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.interop import LayerFileWriter, read_bilm_archive

DESCRIPTION = """
Reads one sentence a line, its tokens separated by white space, and writes an HDF5 file with one
float32 data set a line. Its key is the number of the line, from "0"; the data set
`sentence_to_index` holds a JSON map from each sentence to its key.
"""

CHOICES: Dict[str, Callable[[numpy.ndarray], numpy.ndarray]] = {
    "all": lambda layers: layers,
    "top": lambda layers: layers[-1],
    "average": lambda layers: layers.mean(axis=0),
}
"""What is kept of the layers of a sentence, of shape `(layers, tokens, width)`."""


@Subcommand.register("elmo")
class Elmo(Subcommand):
    """Exports the layers of a trained biLM; see `allennlp elmo --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        """Declares the arguments."""
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            help="Write the vectors of each layer of a biLM for the sentences of a text file.",
        )
        subparser.add_argument("input_file", type=str, help="the text, one sentence a line")
        subparser.add_argument("output_file", type=str, help="the HDF5 file to write")
        kept = subparser.add_mutually_exclusive_group(required=True)
        for choice, meaning in (
            ("all", "all layers: (layers, tokens, width)"),
            ("top", "the last layer: (tokens, width)"),
            ("average", "the mean of the layers: (tokens, width)"),
        ):
            kept.add_argument(
                f"--{choice}", dest="kept", action="store_const", const=choice, help=meaning
            )
        subparser.add_argument(
            "--weight-file",
            type=str,
            required=True,
            help="the archive of a trained biLM (model.tar.gz)",
        )
        subparser.add_argument("--batch-size", type=int, default=64, help="sentences a batch")
        subparser.add_argument(
            "--cuda-device",
            type=int,
            default=-1,
            help="the number of a GPU, or -1 for the processor",
        )
        subparser.add_argument(
            "--file-friendly-logging",
            action="store_true",
            help="print the progress bar on lines of its own, and less often",
        )
        subparser.set_defaults(func=export_from_args)
        return subparser


def export_from_args(args: argparse.Namespace) -> None:
    """
    Runs the command. What the command line or a file causes is one line on stderr and exit
    status 1.
    """
    if args.file_friendly_logging:
        common_logging.FILE_FRIENDLY_LOGGING = True
    try:
        if args.batch_size < 1:
            raise ConfigurationError(f"expected --batch-size of 1 or more, got {args.batch_size}")
        export_layers(
            Path(args.input_file),
            Path(args.output_file),
            archive_file=args.weight_file,
            kept=args.kept,
            batch_size=args.batch_size,
            cuda_device=args.cuda_device,
        )
    except ConfigurationError as error:
        raise SystemExit(f"allennlp elmo: error: {error.message}") from None
    except OSError as error:
        raise SystemExit(f"allennlp elmo: error: {args.output_file}: {error}") from None


def export_layers(
    input_file: Path,
    output_file: Path,
    *,
    archive_file: str,
    kept: str = "all",
    batch_size: int = 64,
    cuda_device: int = -1,
) -> None:
    """
    Writes the layers of every sentence of a file. The whole input is checked before the first
    sentence is embedded, and `output_file` appears when it is whole.

    # Parameters

    input_file, output_file : `Path`
        The text, and the HDF5 file to write.
    archive_file : `str`
        The archive of a language model.
    kept : `str`, optional (default = `"all"`)
        A key of `CHOICES`.
    batch_size : `int`, optional (default = `64`)
        Sentences a batch.
    cuda_device : `int`, optional (default = `-1`)
        The number of a GPU, or -1 for the processor.

    # Raises

    ConfigurationError
        If a file or the device can't be used, or a line holds no token.
    """
    if output_file.exists() and input_file.exists() and output_file.samefile(input_file):
        raise ConfigurationError(f"{output_file}: the output would replace the input")
    num_sentences = sum(1 for _ in sentences_of(input_file))
    with LayerFileWriter.open(output_file) as writer:
        embed = SentenceLayers(read_bilm_archive(archive_file), cuda_device)
        with Tqdm.tqdm(total=num_sentences, unit=" sentences") as progress:
            for group in lazy_groups_of(sentences_of(input_file), batch_size):
                lines, tokens = zip(*group)
                for line, layers in zip(lines, embed(tokens)):
                    writer.write(line, CHOICES[kept](layers))
                progress.update(len(group))


def sentences_of(input_file: Path) -> Iterator[Tuple[str, List[str]]]:
    """
    Yields each line, stripped, and its tokens.

    # Raises

    ConfigurationError
        At a line without a token; the message names it.
    """
    for number, line in enumerate(text_lines(input_file), start=1):
        tokens = line.split()
        if not tokens:
            raise ConfigurationError(
                f"{input_file}, line {number}: expected a sentence, but the line is blank. Remove "
                "blank lines: the keys of the output are line numbers."
            )
        yield line.strip(), tokens
