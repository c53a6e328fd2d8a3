"""
`allennlp elmo`: writes the vectors of each layer of a biLM for the sentences of a text file.
`allennlp elmo-join`: joins the files that several processes of `allennlp elmo --shard` wrote.
"""

import argparse
import json
import logging
import shlex
import shutil
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, List, Optional

from allennlp.commands.subcommand import Subcommand
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError

from elmo_scratch.command_line.elmo import ELMO, ELMO_JOIN, WARM_UP_SENTENCES
from elmo_scratch.commands.command_error import PackageSubcommand, check_arguments, command_errors
from elmo_scratch.data.lines import text_lines
from elmo_scratch.data.sentence_forms import cut_sentences, form_by_name
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
from elmo_scratch.export.export import check_export_place, has_parts
from elmo_scratch.export.plan import Span, in_words
from elmo_scratch.files.paths import resolve_path
from elmo_scratch.interop import LayerFile
from elmo_scratch.terminal import closing_lines, counted, duration

STANDARD_INPUT = "-"

logger = logging.getLogger(__name__)


@Subcommand.register("elmo")
class Elmo(PackageSubcommand):
    """Exports the layers of a biLM; see `allennlp elmo --help`."""

    command_line = ELMO

    def run(self, args: argparse.Namespace) -> None:
        if args.file_friendly_logging:
            common_logging.FILE_FRIENDLY_LOGGING = True
        output_file = Path(args.output_file)
        way_on = "go on with --overwrite --resume" if args.overwrite else "go on with --resume"
        with (
            command_errors(
                "elmo",
                args.output_file,
                way_on,
                lambda: has_parts(output_file),
                is_verbose=args.verbose,
            ),
            ExitStack() as opened,
        ):
            check_arguments(ELMO, args)
            shard = None if args.shard is None else Shard.parse(args.shard)
            if shard is not None:
                output_file = shard.file_of(output_file)
            name = "standard input" if args.input_file == STANDARD_INPUT else args.input_file
            form = args.input_format or form_by_name(args.input_file)
            file = file_of_input(args.input_file, name, opened)
            text = InputText(name, file, form, language=args.tokenize)
            span = None if shard is None else shard.span_of(text.num_sentences)
            settings = ExportSettings(
                **{name: getattr(args, name) for name in ExportSettings._fields}
            )
            source = _model_source(args, text)
            engine: Engine = OneProcess()
            if args.engine == "ray":
                engine = RayEngine(source, args.workers, packages=args.include_package)
                source = source.at_rest()
            # Check first, so that no model is fetched and loaded for nothing.
            check_settings(text, settings, args.state, span, engine)
            check_export_place(output_file)
            layers = source.load()
            started = time.perf_counter()
            export_layers(
                text,
                output_file,
                layers,
                settings,
                span=span,
                resume=args.resume,
                overwrite=args.overwrite,
                engine=engine,
            )
            read = _read(text, span, time.perf_counter() - started, is_timed=not args.resume)
            steps = None
            if shard is not None:
                join = shlex.join(["allennlp", "elmo-join", args.output_file])
                steps = [f"{join}  # when all {shard.total} are there"]
            _close(read, output_file, steps)


def _read(text: InputText, span: Optional[Span], seconds: float, is_timed: bool) -> str:
    """
    Tells how much was read in what time, and how fast. A resumed export, which is not timed, has
    found some of it done; how many tokens a shard has nobody has counted.
    """
    if span is not None:
        return f"{counted(span.num_sentences, 'sentence')} in {duration(seconds)}"
    read = f"{counted(text.num_sentences, 'sentence')}, {counted(text.num_tokens, 'token')}"
    if not is_timed:
        return read
    return f"{read} in {duration(seconds)}: {text.num_tokens / seconds:,.0f} tokens/s"


def _close(read: str, output_file: Path, steps: Optional[List[str]] = None) -> None:
    """Prints what was read and written, and what to do with it unless `steps` says that."""
    with LayerFile(output_file) as file:
        facts = file.facts
        has_tokens = facts.pool is None and (file.has_index or facts.keys == "sentences")
    kept = {
        "all": counted(facts.layers, "layer"),
        "top": "the top layer",
        "average": f"the mean of {counted(facts.layers, 'layer')}",
    }[facts.kept]
    owner = "token" if facts.pool is None else f"sentence, the {facts.pool} over its tokens"
    size = in_words(output_file.stat().st_size)
    written = f"{kept} of {facts.width:,} numbers for each {owner}: {facts.dtype}, {size}"
    if steps is None:
        page = str(output_file.with_suffix(".html"))
        words = ["allennlp", "elmo-explore", str(output_file), "-o", page]
        if not has_tokens:
            name = json.dumps(str(output_file))
            words = ["python", "-c", f"import elmo_scratch as e; print(e.LayerFile({name}).facts)"]
        steps = [shlex.join(words)]
    print("\n".join(closing_lines([read, written], {"layers": output_file}, steps)))


def file_of_input(input_file: str, name: str, opened: ExitStack) -> Path:
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
        warm_up = _warm_up_of(args.warm_up_file, args.tokenize)
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
        args.trust,
    )


def _warm_up_of(file: str, language: Optional[str]) -> List[List[str]]:
    """The sentences of a text to warm up with, cut as the text to embed."""
    cut = cut_sentences(text_lines(file), file, "text", language)
    sentences = [sentence.tokens for sentence in cut if sentence.tokens]
    if not sentences:
        raise ConfigurationError(f"{file}: expected sentences, but no line holds a token")
    return sentences


@Subcommand.register("elmo-join")
class ElmoJoin(PackageSubcommand):
    """Joins the files of shards; see `allennlp elmo-join --help`."""

    command_line = ELMO_JOIN

    def run(self, args: argparse.Namespace) -> None:
        with command_errors("elmo-join", args.output_file, is_verbose=args.verbose):
            output_file = Path(args.output_file)
            join_shards(output_file, remove=args.remove_shards, overwrite=args.overwrite)
            with LayerFile(output_file) as layers:
                read = counted(len(layers), "sentence")
            _close(read, output_file)
