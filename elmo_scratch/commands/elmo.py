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
from typing import Any, BinaryIO, Dict, List, Optional

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
    join_shards,
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


KEPT_MEANINGS = {
    "all": "all layers: (layers, tokens, width)",
    "top": "the last layer: (tokens, width)",
    "average": "the mean of the layers: (tokens, width)",
}
"""The help for the layers to keep, one of which must be chosen."""

WRITTEN: Dict[str, Dict[str, Any]] = {
    "--pool": {
        "choices": POOLS,
        "help": "one vector a sentence: the mean or maximum over its tokens",
    },
    "--dtype": {
        "choices": DTYPES,
        "default": "float32",
        "help": "of the numbers (default: float32)",
    },
    "--compression": {"choices": COMPRESSIONS, "help": "of the data sets"},
    "--use-sentence-keys": {
        "action": "store_true",
        "help": "make each sentence the key of its vectors, in place of the number of its line",
    },
    "--forget-sentences": {"action": "store_true", "help": "leave sentence_to_index out"},
}
"""The arguments for the content of the output, besides the layers to keep."""

MODEL: Dict[str, Dict[str, Any]] = {
    "--options-file": {
        "type": str,
        "help": "an official options.json, a path or an address (default: that of the released "
        "original model)",
    },
    "--weight-file": {
        "type": str,
        "help": "an official weights.hdf5, a path or an address (default: that of the released "
        "original model); or, alone, the archive of a trained biLM (model.tar.gz)",
    },
    "--state": {
        "choices": STATES,
        "default": "carry",
        "help": "what a sentence starts from. carry (default): from where the one of the same "
        "place in the batch before ended, as the original does. reset: from zeros. warm: from "
        "where a text to warm up with ended. With reset and warm vectors depend on nothing else",
    },
    "--warm-up-file": {
        "type": str,
        "help": "with --state warm: that text (default: if an archive comes with such a state, "
        f"that state; otherwise {WARM_UP_SENTENCES} sentences of the input, the same ones whatever "
        "the order of its lines)",
    },
    "--vocab-path": {
        "type": str,
        "help": "a file with one word a line, whose vectors are computed ahead",
    },
    "--matmul-dtype": {
        "choices": MATMUL_DTYPES,
        "default": "float32",
        "help": "the precision of matrix products (default: float32); bfloat16 is used where the "
        "processor is faster with it",
    },
}
"""The arguments for the biLM and how it reads the text."""

RUN: Dict[str, Dict[str, Any]] = {
    "--batch-size": {"type": int, "default": 64, "help": "sentences a batch (default: 64)"},
    "--max-tokens": {
        "type": int,
        "help": "fill batches up to so many tokens instead (with --state reset or warm)",
    },
    "--cuda-device": {
        "type": int,
        "default": -1,
        "help": "the number of a GPU, or -1 for the processor",
    },
    "--resume": {"action": "store_true", "help": "go on with what an interrupted run has left"},
    "--overwrite": {
        "action": "store_true",
        "help": "replace the output, and what was left of it",
    },
    "--shard": {
        "type": str,
        "metavar": "I/N",
        "help": "do only the I-th of N parts, I from 1, and write OUTPUT.I-of-N; allennlp "
        "elmo-join makes one file of them (with --state reset or warm)",
    },
    "--engine": {
        "choices": ENGINES,
        "default": "local",
        "help": "ray: share the work among the workers of a Ray cluster, that of RAY_ADDRESS or "
        "one on this machine (with --state reset or warm)",
    },
    "--workers": {
        "type": int,
        "help": "with --engine ray: how many (default: one for each processor, or GPU, that is "
        "free)",
    },
    "--file-friendly-logging": {
        "action": "store_true",
        "help": "print the progress bar on lines of its own, and less often",
    },
}
"""The arguments for batches, devices, resuming and sharing the work."""

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
        subparser.add_argument(
            "input_file", type=str, help="the text, one sentence a line; - for standard input"
        )
        subparser.add_argument("output_file", type=str, help="the HDF5 file to write")
        written = subparser.add_argument_group("what is written")
        kept = written.add_mutually_exclusive_group(required=True)
        for choice, meaning in KEPT_MEANINGS.items():
            kept.add_argument(
                f"--{choice}", dest="kept", action="store_const", const=choice, help=meaning
            )
        model = subparser.add_argument_group("the model")
        run = subparser.add_argument_group("how it runs")
        for group, arguments in ((written, WRITTEN), (model, MODEL), (run, RUN)):
            for name, declared in arguments.items():
                group.add_argument(name, **declared)
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
        elif args.workers is not None:
            raise ConfigurationError(
                "--workers needs --engine ray: one process does the work otherwise"
            )
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


JOIN_DESCRIPTION = """
Writes OUTPUT from OUTPUT.1-of-N ... OUTPUT.N-of-N, which `allennlp elmo --shard I/N` wrote beside
it. The result is the same as if one process had written it all.
"""


@Subcommand.register("elmo-join")
class ElmoJoin(Subcommand):
    """Joins the files of shards; see `allennlp elmo-join --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=JOIN_DESCRIPTION,
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
