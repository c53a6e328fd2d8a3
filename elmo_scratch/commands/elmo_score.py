"""`allennlp elmo-score`: tells how likely a language model finds the words of a text."""

import argparse
import os
import shlex
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, TextIO

from allennlp.commands.subcommand import Subcommand
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError
from allennlp.common.tqdm import Tqdm

from elmo_scratch.command_line.elmo_score import ELMO_SCORE
from elmo_scratch.commands.command_error import PackageSubcommand, check_arguments, command_errors
from elmo_scratch.commands.elmo import STANDARD_INPUT, file_of_input
from elmo_scratch.files.atomic import atomic_write, check_place
from elmo_scratch.scoring import SentenceScore, SentenceScorer, TextScore, json_lines, table_lines
from elmo_scratch.scoring.scores import json_total, table_total
from elmo_scratch.terminal import closing_lines, duration
from elmo_scratch_compat.strangers import trusted


class Format(NamedTuple):
    """How the scores of sentences and of the text become lines."""

    of_sentence: Callable[[SentenceScore], List[str]]
    of_text: Callable[[TextScore], List[str]]


FORMATS: Dict[str, Format] = {
    "table": Format(table_lines, table_total),
    "jsonl": Format(json_lines, json_total),
}
"""By their names for `--format`."""


@Subcommand.register("elmo-score")
class ElmoScore(PackageSubcommand):
    """Scores the words of a text; see `allennlp elmo-score --help`."""

    command_line = ELMO_SCORE

    def run(self, args: argparse.Namespace) -> None:
        if args.file_friendly_logging:
            common_logging.FILE_FRIENDLY_LOGGING = True
        place = args.output_file or "standard output"
        errors = command_errors("elmo-score", place, is_verbose=args.verbose)
        with errors, trusted(args.trust), ExitStack() as opened:
            check_arguments(ELMO_SCORE, args)
            name = "standard input" if args.input_file == STANDARD_INPUT else args.input_file
            text_file = file_of_input(args.input_file, name, opened)
            _check_output(args, text_file)
            scorer = _scorer(args)
            kind = args.format or ("table" if args.output_file is None else "jsonl")
            started = time.perf_counter()
            if args.output_file is None:
                with _standard_output() as output:
                    _write(scorer, text_file, args.top, FORMATS[kind], output)
                return
            with (
                atomic_write(Path(args.output_file)) as temporary,
                temporary.open("w", encoding="utf-8", newline="\n") as output,
            ):
                total = _write(scorer, text_file, args.top, FORMATS[kind], output)
            seconds = time.perf_counter() - started
        told = table_total(total)
        told[0] += f" in {duration(seconds)}: {total.num_words / seconds:,.0f} words/s"
        steps = [] if kind == "table" else [shlex.join(["tail", "-n", "1", args.output_file])]
        print("\n".join(closing_lines(told, {"scores": args.output_file}, steps)))


def _write(
    scorer: SentenceScorer, text_file: Path, top: int, kind: Format, output: TextIO
) -> TextScore:
    """Writes the lines of a text, sentence by sentence, and returns its sums."""
    total = TextScore()
    # The lines themselves tell of progress where they are read as they come.
    with Tqdm.tqdm(unit=" sentences", leave=False, disable=output.isatty()) as progress:
        for score in scorer.score_text(text_file, top, progress.update):
            total.add(score)
            output.writelines(f"{line}\n" for line in kind.of_sentence(score))
    output.writelines(f"{line}\n" for line in kind.of_text(total))
    return total


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    """Standard output. If its reader, such as `head`, has read enough, the program ends quietly."""
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain when it flushes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


def _check_output(args: argparse.Namespace, text_file: Path) -> None:
    """Checks before the work that the output can be written, and replaces nothing by mistake."""
    if args.output_file is None:
        return
    output = Path(args.output_file)
    check_place(output)
    if not output.exists():
        return
    if any(Path(file).exists() and output.samefile(file) for file in (text_file, args.model)):
        raise ConfigurationError(f"{output}: the output would replace an input")
    if not args.overwrite:
        raise ConfigurationError(
            f"{output}: it is there already. Choose another name, or replace it with --overwrite."
        )


def _scorer(args: argparse.Namespace) -> SentenceScorer:
    """Reads the model that the arguments name."""
    if args.options_file is None:
        return SentenceScorer.from_pretrained(
            args.model,
            softmax_file=args.softmax_file,
            vocab_file=args.vocab_path,
            state=args.state,
            batch_size=args.batch_size,
            cuda_device=args.cuda_device,
        )
    settings = {"state": args.state, "batch_size": args.batch_size}
    return SentenceScorer.from_official(
        args.options_file,
        args.model,
        args.softmax_file,
        args.vocab_path,
        cuda_device=args.cuda_device,
        **{name: value for name, value in settings.items() if value is not None},
    )
