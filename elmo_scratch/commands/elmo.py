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
from elmo_scratch.commands.elmo_arguments import (
    STANDARD_INPUT,
    WARM_UP_SENTENCES,
    add_arguments,
)
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
from elmo_scratch.files.atomic import check_place
from elmo_scratch.files.paths import located

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
        """Declares the arguments."""
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            help="Write the vectors of each layer of a biLM for the sentences of a text file.",
        )
        add_arguments(subparser)
        subparser.set_defaults(func=export_from_args)
        return subparser


def export_from_args(args: argparse.Namespace) -> None:
    """
    Runs the command.

    # Raises

    CommandError
        For what the command line or a file causes.
    SystemExit
        If it is interrupted, as in `command_errors`.
    """
    if args.file_friendly_logging:
        common_logging.FILE_FRIENDLY_LOGGING = True
    way_on = "go on with --overwrite --resume" if args.overwrite else "go on with --resume"
    with command_errors("elmo", args.output_file, way_on, lambda: has_parts(_output_of(args))):
        with _input_text(args) as text:
            _export(args, text)


def _export(args: argparse.Namespace, text: InputText) -> None:
    """Exports a text that has been checked."""
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
    # Before a model is fetched and loaded for nothing.
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
    """The file that is written: that of a shard, if it is to be one."""
    output_file = Path(args.output_file)
    return output_file if args.shard is None else Shard.parse(args.shard).file_of(output_file)


def _model_source(args: argparse.Namespace, text: InputText) -> ModelSource:
    """The biLM that is asked for."""
    warm_up: Optional[List[List[str]]] = None
    default_warm_up: Optional[List[List[str]]] = None
    if args.warm_up_file is not None:
        warm_up = list(split_lines(args.warm_up_file))
    elif args.state == "warm":
        default_warm_up = [sentence.tokens for sentence in text.sample(WARM_UP_SENTENCES)]
    words: List[str] = []
    if args.vocab_path is not None:
        try:
            located(args.vocab_path)
        except FileNotFoundError:
            # AllenNLP 0.9 never read it, and its help asked for a file to be made.
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
    """The input, checked. What can be read only once is kept in a file, to be read twice."""
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
    """A file with what can be read only once, as long as the stack is open."""
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
