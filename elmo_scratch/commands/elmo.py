"""
`allennlp elmo`: writes the vectors of each layer of a biLM for the sentences of a text file.
"""

import argparse
import logging
import shutil
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Iterator, List, Optional

from allennlp.commands.subcommand import Subcommand
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError

from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.data.lines import split_lines, text_lines
from elmo_scratch.export import (
    Engine,
    ExportSettings,
    InputText,
    ModelSource,
    OneProcess,
    RayEngine,
    Shard,
    check_settings,
    export_layers,
)
from elmo_scratch.export.export import has_parts
from elmo_scratch.export.plan import DTYPES, POOLS
from elmo_scratch.files.atomic import check_place
from elmo_scratch.files.paths import resolve_path
from elmo_scratch.interop.layer_files.writer import COMPRESSIONS
from elmo_scratch.kernels import MATMUL_DTYPES
from elmo_scratch.modules.state_memory import STATES

ENGINES = ("local", "ray")

STANDARD_INPUT = "-"

WARM_UP_SENTENCES = 100
"""The number of sentences of the input that warm the biLM up if no other text is given."""


def add_arguments(subparser: argparse.ArgumentParser) -> None:
    """Declares the arguments of the command."""
    subparser.add_argument(
        "input_file", type=str, help="the text, one sentence a line; - for standard input"
    )
    subparser.add_argument("output_file", type=str, help="the HDF5 file to write")
    _add_what_is_written(subparser)
    _add_the_model(subparser)
    _add_how_it_runs(subparser)


def _add_what_is_written(subparser: argparse.ArgumentParser) -> None:
    """Declares the arguments for the content of the output."""
    group = subparser.add_argument_group("what is written")
    kept = group.add_mutually_exclusive_group(required=True)
    for choice, meaning in (
        ("all", "all layers: (layers, tokens, width)"),
        ("top", "the last layer: (tokens, width)"),
        ("average", "the mean of the layers: (tokens, width)"),
    ):
        kept.add_argument(
            f"--{choice}", dest="kept", action="store_const", const=choice, help=meaning
        )
    group.add_argument(
        "--pool", choices=POOLS, help="one vector a sentence: the mean or maximum over its tokens"
    )
    group.add_argument(
        "--dtype", choices=DTYPES, default="float32", help="of the numbers (default: float32)"
    )
    group.add_argument("--compression", choices=COMPRESSIONS, help="of the data sets")
    group.add_argument(
        "--use-sentence-keys",
        action="store_true",
        help="make each sentence the key of its vectors, in place of the number of its line",
    )
    group.add_argument(
        "--forget-sentences", action="store_true", help="leave sentence_to_index out"
    )


def _add_the_model(subparser: argparse.ArgumentParser) -> None:
    """Declares the arguments for the biLM and how it reads the text."""
    group = subparser.add_argument_group("the model")
    group.add_argument(
        "--options-file",
        type=str,
        help="an official options.json, a path or an address (default: that of the released "
        "original model)",
    )
    group.add_argument(
        "--weight-file",
        type=str,
        help="an official weights.hdf5, a path or an address (default: that of the released "
        "original model); or, alone, the archive of a trained biLM (model.tar.gz)",
    )
    group.add_argument(
        "--state",
        choices=STATES,
        default="carry",
        help="what a sentence starts from. carry (default): from where the one of the same place "
        "in the batch before ended, as the original does. reset: from zeros. warm: from where a "
        "text to warm up with ended. With reset and warm vectors depend on nothing else",
    )
    group.add_argument(
        "--warm-up-file",
        type=str,
        help="with --state warm: that text (default: if an archive comes with such a state, that "
        f"state; otherwise {WARM_UP_SENTENCES} sentences of the input, the same ones whatever the "
        "order of its lines)",
    )
    group.add_argument(
        "--vocab-path",
        type=str,
        help="a file with one word a line, whose vectors are computed ahead",
    )
    group.add_argument(
        "--matmul-dtype",
        choices=MATMUL_DTYPES,
        default="float32",
        help="the precision of matrix products (default: float32); bfloat16 is used where the "
        "processor is faster with it",
    )


def _add_how_it_runs(subparser: argparse.ArgumentParser) -> None:
    """Declares the arguments for batches, devices, resuming and sharing the work."""
    group = subparser.add_argument_group("how it runs")
    group.add_argument("--batch-size", type=int, default=64, help="sentences a batch (default: 64)")
    group.add_argument(
        "--max-tokens",
        type=int,
        help="fill batches up to so many tokens instead (with --state reset or warm)",
    )
    group.add_argument(
        "--cuda-device", type=int, default=-1, help="the number of a GPU, or -1 for the processor"
    )
    group.add_argument(
        "--resume", action="store_true", help="go on with what an interrupted run has left"
    )
    group.add_argument(
        "--overwrite", action="store_true", help="replace the output, and what was left of it"
    )
    group.add_argument(
        "--shard",
        type=str,
        metavar="I/N",
        help="do only the I-th of N parts, I from 1, and write OUTPUT.I-of-N; allennlp elmo-join "
        "makes one file of them (with --state reset or warm)",
    )
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="ray: share the work among the workers of a Ray cluster, that of RAY_ADDRESS or one "
        "on this machine (with --state reset or warm)",
    )
    group.add_argument(
        "--workers",
        type=int,
        help="with --engine ray: how many (default: one for each processor, or GPU, that is free)",
    )
    group.add_argument(
        "--file-friendly-logging",
        action="store_true",
        help="print the progress bar on lines of its own, and less often",
    )


logger = logging.getLogger(__name__)

DESCRIPTION = """
Reads one sentence a line, its tokens separated by white space, and writes an HDF5 file with one
data set a line. Its key is the number of the line, from "0"; the data set `sentence_to_index`
holds a JSON map from each sentence to its key. The file appears when it is whole; until then what
is done lies beside it, in OUTPUT.parts, for --resume.
"""


@Subcommand.register("elmo")
class Elmo(Subcommand):
    """Exports the layers of a biLM; see `allennlp elmo --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            help="Write the vectors of each layer of a biLM for the sentences of a text file.",
        )
        add_arguments(subparser)
        subparser.set_defaults(func=export_from_args)
        return subparser


def export_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    if args.file_friendly_logging:
        common_logging.FILE_FRIENDLY_LOGGING = True
    way_on = "go on with --overwrite --resume" if args.overwrite else "go on with --resume"
    with command_errors("elmo", args.output_file, way_on, lambda: has_parts(_output_of(args))):
        with _input_text(args) as text:
            _export(args, text)


def _export(args: argparse.Namespace, text: InputText) -> None:
    """Exports the layers for a text that has been checked."""
    if args.workers is not None and args.engine != "ray":
        raise ConfigurationError(
            "--workers needs --engine ray: one process does the work otherwise"
        )
    settings = ExportSettings(**{name: getattr(args, name) for name in ExportSettings._fields})
    shard = None if args.shard is None else Shard.parse(args.shard)
    output_file = _output_of(args)
    span = None if shard is None else shard.span_of(text.num_sentences)
    source = _model_source(args, text)
    engine: Engine = OneProcess()
    if args.engine == "ray":
        engine = RayEngine(source, args.workers, packages=args.include_package)
        source = source.at_rest()
    # Check first, so that no model is fetched and loaded for nothing.
    check_settings(text, settings, args.state, span, engine)
    check_place(output_file)
    export_layers(
        text,
        output_file,
        source.load(),
        settings,
        span=span,
        resume=args.resume,
        overwrite=args.overwrite,
        engine=engine,
    )


def _output_of(args: argparse.Namespace) -> Path:
    """Returns the file to write; with `--shard` the file of this shard."""
    output_file = Path(args.output_file)
    return output_file if args.shard is None else Shard.parse(args.shard).file_of(output_file)


def _model_source(args: argparse.Namespace, text: InputText) -> ModelSource:
    """Returns the source of the biLM that the arguments ask for."""
    warm_up: Optional[List[List[str]]] = None
    default_warm_up: Optional[List[List[str]]] = None
    if args.warm_up_file is not None:
        warm_up = list(split_lines(args.warm_up_file))
    elif args.state == "warm":
        default_warm_up = [sentence.tokens for sentence in text.sample(WARM_UP_SENTENCES)]
    words: List[str] = []
    if args.vocab_path is not None:
        try:
            resolve_path(args.vocab_path)
        except FileNotFoundError:
            # No error: AllenNLP 0.9 never read the file, and its help asked for one to be made.
            logger.warning("%s: there is no such file: no word is encoded ahead", args.vocab_path)
        else:
            words = [word for line in text_lines(args.vocab_path) for word in line.split()]
    return ModelSource(
        args.options_file,
        args.weight_file,
        args.state,
        args.matmul_dtype,
        args.cuda_device,
        warm_up,
        default_warm_up,
        words,
    )


@contextmanager
def _input_text(args: argparse.Namespace) -> Iterator[InputText]:
    """Yields the input, checked. Standard input and pipes are copied, since it is read twice."""
    path = Path(args.input_file)
    is_standard_input = args.input_file == STANDARD_INPUT
    name = "standard input" if is_standard_input else args.input_file
    with ExitStack() as opened:
        try:
            if is_standard_input or path.exists() and not (path.is_file() or path.is_dir()):
                source: BinaryIO = sys.stdin.buffer
                if not is_standard_input:
                    source = opened.enter_context(path.open("rb"))
                path = _copy_of(source, name, opened)
        except OSError as error:
            raise ConfigurationError(f"{name}: cannot be read ({error.strerror})") from None
        yield InputText(name, path)


def _copy_of(source: BinaryIO, name: str, opened: ExitStack) -> Path:
    """Copies a source into a temporary file, which is removed when the stack closes."""
    try:
        kept = Path(opened.enter_context(TemporaryDirectory())) / "input.txt"
        with kept.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    except OSError as error:
        raise ConfigurationError(
            f"{name}: it can't be copied into a temporary folder, to be read twice "
            f"({error.strerror}). Name another folder with room for it as TMPDIR, or write it to a "
            "file first."
        ) from None
    return kept
