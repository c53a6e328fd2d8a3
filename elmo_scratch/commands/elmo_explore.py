"""`allennlp elmo-explore`: shows which tokens of a text are near each other, layer by layer."""

import argparse
import shlex
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Dict, List, Optional

import h5py
from allennlp.commands.subcommand import Subcommand
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm

from elmo_scratch.command_line.elmo_explore import ELMO_EXPLORE
from elmo_scratch.commands.command_error import PackageSubcommand, check_arguments, command_errors
from elmo_scratch.data.lines import text_lines
from elmo_scratch.data.sentence_forms import cut_sentences, form_by_name
from elmo_scratch.explore import (
    ExportedTokens,
    layer_page,
    read_labels,
    word_lines,
    write_projector,
)
from elmo_scratch.explore.page import CONFIG, MAX_TOKENS, num_steps
from elmo_scratch.export import ExportSettings, InputText, ModelSource, export_layers
from elmo_scratch.export.plan import in_words
from elmo_scratch.files.atomic import atomic_write, check_place
from elmo_scratch.files.paths import local_file
from elmo_scratch.interop import LayerFile
from elmo_scratch.terminal import closing_lines, counted, without_information


@Subcommand.register("elmo-explore")
class ElmoExplore(PackageSubcommand):
    """Shows nearest neighbours layer by layer; see `allennlp elmo-explore --help`."""

    command_line = ELMO_EXPLORE

    def run(self, args: argparse.Namespace) -> None:
        if args.file_friendly_logging:
            common_logging.FILE_FRIENDLY_LOGGING = True
        with (
            command_errors(
                "elmo-explore",
                args.output_file or args.projector or args.input_file,
                is_verbose=args.verbose,
            ),
            ExitStack() as opened,
        ):
            check_arguments(ELMO_EXPLORE, args)
            _check(args)
            source = _source(args)
            layer_file, num_lines = Path(args.input_file), None
            if source is not None:
                folder = Path(opened.enter_context(TemporaryDirectory()))
                layer_file = folder / layer_file.name
                num_lines = _export(args, source, layer_file)
            layers = opened.enter_context(LayerFile(layer_file))
            if args.word is not None:
                _print_word(ExportedTokens(layers), args.word, args.neighbours or 5)
            if args.output_file is None and args.projector is None:
                return
            tokens = ExportedTokens(layers, max_sentences=args.max_sentences, max_tokens=MAX_TOKENS)
            labels = None if args.labels is None else read_labels(args.labels, tokens, num_lines)
            if args.output_file is not None:
                _write_page(tokens, args, labels)
            if args.projector is not None:
                _write_projector(tokens, args, labels)
            print("\n".join(_closing(tokens, args)))


def _closing(tokens: ExportedTokens, args: argparse.Namespace) -> List[str]:
    """Returns the lines that tell what was written, and how to see it."""
    told = ", ".join(
        (
            counted(len(tokens.sentences), "sentence"),
            counted(len(tokens), "token"),
            counted(tokens.num_layers, "layer"),
        )
    )
    places: Dict[str, object] = {}
    steps = []
    if args.output_file is not None:
        size = in_words(Path(args.output_file).stat().st_size)
        places["page"] = f"{args.output_file}, {size}, for a browser"
        address = Path(args.output_file).resolve().as_uri()
        steps.append(shlex.join(["python", "-m", "webbrowser", address]))
    if args.projector is not None:
        places["vectors"] = args.projector
        steps.append(shlex.join(["tensorboard", "--logdir", args.projector]))
    return closing_lines([told], places, steps)


def _check(args: argparse.Namespace) -> None:
    """Checks the files that the arguments name, before any work."""
    if not Path(args.input_file).is_file():
        raise ConfigurationError(f"{args.input_file}: there is no such file")
    if args.output_file is not None:
        _check_output(Path(args.output_file), args)
    if args.projector is not None:
        folder = Path(args.projector)
        if folder.exists() and not folder.is_dir():
            raise ConfigurationError(f"{folder}: expected a folder to write to, but it is a file")
        # A new folder appears in the one above it.
        _check_output(folder / CONFIG if folder.exists() else folder, args)


def _check_output(output: Path, args: argparse.Namespace) -> None:
    """Checks that an output can be written, and replaces nothing unless it shall."""
    check_place(output)
    if output.exists():
        if output.samefile(args.input_file):
            raise ConfigurationError(f"{output}: the output would replace the input")
        if not args.overwrite:
            raise ConfigurationError(
                f"{output}: it is there already. Choose another name, or replace it with "
                "--overwrite."
            )


def _source(args: argparse.Namespace) -> Optional[ModelSource]:
    """Returns the model that reads the text; `None` if the input is a file of layers."""
    named = [name for name in (args.archive, args.options_file, args.weight_file) if name]
    holds_layers = h5py.is_hdf5(args.input_file)
    if holds_layers and args.tokenize is not None:
        raise ConfigurationError(
            f"{args.input_file}: it holds layers of words already: leave --tokenize out"
        )
    if not named:
        if not holds_layers:
            raise ConfigurationError(
                f"{args.input_file}: expected an HDF5 file of layers, as `allennlp elmo` writes "
                "it. For a text name the model that shall read it: --archive model.tar.gz"
            )
        return None
    if holds_layers:
        raise ConfigurationError(
            f"{args.input_file}: it holds layers already: leave the model {named[0]} out"
        )
    weight_file = args.archive or args.weight_file
    return ModelSource(
        args.options_file,
        weight_file,
        "reset",
        cuda_device=args.cuda_device,
        is_trusted=args.trust,
    )


def _export(args: argparse.Namespace, source: ModelSource, layer_file: Path) -> int:
    """
    Writes the layers of the text, or of as much of it as is shown, and returns how many lines it
    has.
    """
    file, form = local_file(args.input_file), form_by_name(args.input_file)
    most = None if args.word is not None else args.max_sentences
    shown = InputText(args.input_file, file, form, language=args.tokenize, most=most)
    sentences = cut_sentences(text_lines(file, args.input_file), args.input_file, form)
    num_sentences = sum(1 for _ in sentences)
    # It tells the size of a file that nobody will see.
    with without_information("elmo_scratch.export.export"):
        export_layers(shown, layer_file, source.load(), ExportSettings())
    return num_sentences


def _print_word(tokens: ExportedTokens, word: str, k: int) -> None:
    """Prints what `--word` asks for."""
    with Tqdm.tqdm(total=len(tokens), unit=" tokens", delay=1, leave=False) as progress:
        lines = word_lines(tokens, word, k, progress.update)
    print("\n".join(lines))


def _write_page(
    tokens: ExportedTokens, args: argparse.Namespace, labels: Optional[List[str]]
) -> None:
    """Writes the page."""
    with Tqdm.tqdm(total=num_steps(tokens), unit=" blocks", delay=1, leave=False) as progress:
        page = layer_page(tokens, k=args.neighbours or 8, labels=labels, done=progress.update)
    with atomic_write(Path(args.output_file)) as temporary:
        temporary.write_bytes(page)


def _write_projector(
    tokens: ExportedTokens, args: argparse.Namespace, labels: Optional[List[str]]
) -> None:
    """Writes the files for TensorBoard."""
    layer = tokens.num_layers - 1 if args.layer is None else args.layer
    try:
        tokens.check_layer(layer)
    except IndexError as error:
        raise ConfigurationError(str(error)) from None
    with Tqdm.tqdm(total=len(tokens), unit=" tokens", delay=1, leave=False) as progress:
        write_projector(tokens, layer, Path(args.projector), labels=labels, done=progress.update)
