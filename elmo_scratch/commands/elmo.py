"""
`allennlp elmo`: writes the vectors of each layer of a biLM for the sentences of a text file.
`allennlp elmo-join`: joins the files that several processes of `allennlp elmo --shard` wrote.
"""

import argparse
import logging
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, List, Optional

from allennlp.commands.subcommand import Subcommand
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError

from elmo_scratch.command_line.elmo import ELMO, ELMO_JOIN, WARM_UP_SENTENCES
from elmo_scratch.commands.command_error import check_arguments, command_errors
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
    join_shards,
)
from elmo_scratch.export.export import has_parts
from elmo_scratch.files.atomic import check_place
from elmo_scratch.files.paths import resolve_path

STANDARD_INPUT = "-"

logger = logging.getLogger(__name__)


@Subcommand.register("elmo")
class Elmo(Subcommand):
    """Exports the layers of a biLM; see `allennlp elmo --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = ELMO.add_to(parser)
        subparser.set_defaults(func=export_from_args)
        return subparser


def export_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    if args.file_friendly_logging:
        common_logging.FILE_FRIENDLY_LOGGING = True
    output_file = Path(args.output_file)
    way_on = "go on with --overwrite --resume" if args.overwrite else "go on with --resume"
    with (
        command_errors("elmo", args.output_file, way_on, lambda: has_parts(output_file)),
        ExitStack() as opened,
    ):
        check_arguments(ELMO, args)
        shard = None if args.shard is None else Shard.parse(args.shard)
        if shard is not None:
            output_file = shard.file_of(output_file)
        name = "standard input" if args.input_file == STANDARD_INPUT else args.input_file
        text = InputText(name, _file_of_input(args.input_file, name, opened))
        span = None if shard is None else shard.span_of(text.num_sentences)
        settings = ExportSettings(**{name: getattr(args, name) for name in ExportSettings._fields})
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


def _file_of_input(input_file: str, name: str, opened: ExitStack) -> Path:
    """
    Returns a file that can be read twice: standard input and pipes are copied into a temporary one,
    which is removed when the stack closes.
    """
    path = Path(input_file)
    try:
        if input_file == STANDARD_INPUT:
            source: BinaryIO = sys.stdin.buffer
        elif path.exists() and not (path.is_file() or path.is_dir()):
            source = opened.enter_context(path.open("rb"))
        else:
            return path
    except OSError as error:
        raise ConfigurationError(f"{name}: cannot be read ({error.strerror})") from None
    try:
        path = Path(opened.enter_context(TemporaryDirectory())) / "input.txt"
        with path.open("wb") as copy:
            shutil.copyfileobj(source, copy)
    except OSError as error:
        raise ConfigurationError(
            f"{name}: it can't be copied into a temporary folder, to be read twice "
            f"({error.strerror}). Name another folder with room for it as TMPDIR, or write it to a "
            "file first."
        ) from None
    return path


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


@Subcommand.register("elmo-join")
class ElmoJoin(Subcommand):
    """Joins the files of shards; see `allennlp elmo-join --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = ELMO_JOIN.add_to(parser)
        subparser.set_defaults(func=join_from_args)
        return subparser


def join_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    with command_errors("elmo-join", args.output_file):
        join_shards(Path(args.output_file), remove=args.remove_shards, overwrite=args.overwrite)
