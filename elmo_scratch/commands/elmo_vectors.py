"""
`allennlp elmo-vectors`: trains static word vectors on a text, one vector a word.
"""

import argparse
import json
import logging
import os
import shlex
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, Optional, Type

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_scratch.command_line.elmo_vectors import ELMO_VECTORS
from elmo_scratch.commands.command_error import PackageSubcommand, check_arguments, command_errors
from elmo_scratch.data.corpus import list_shards
from elmo_scratch.files.atomic import check_place
from elmo_scratch.interop.static_vectors import check_name, write_static_vectors
from elmo_scratch.static_vectors import NumberedText, PpmiSvd, VectorMethod, VectorText, Word2Vec
from elmo_scratch.terminal import closing_lines, counted, duration

METHODS: Dict[str, Type[Any]] = {"word2vec": Word2Vec, "svd": PpmiSvd}
"""The methods by their names for `--method`."""

MOST_FREQUENT = 100
"""How many of the most frequent words the closing lines choose an example from."""


@Subcommand.register("elmo-vectors")
class ElmoVectors(PackageSubcommand):
    """Trains static word vectors; see `allennlp elmo-vectors --help`."""

    command_line = ELMO_VECTORS

    def run(self, args: argparse.Namespace) -> None:
        if args.file_friendly_logging:
            common_logging.FILE_FRIENDLY_LOGGING = True
        # gensim logs its progress every second, which the progress bar shows already.
        logging.getLogger("gensim").setLevel(logging.WARNING)
        with command_errors("elmo-vectors", args.output_file, is_verbose=args.verbose):
            check_arguments(ELMO_VECTORS, args)
            method = _method(args)
            reader = None if args.reader is None else _reader(args.reader)
            output_file = Path(args.output_file)
            _check_output(output_file, args, reader)
            text = VectorText(
                NumberedText.of_corpus(args.corpus)
                if reader is None
                else NumberedText.of_reader(reader, args.corpus),
                min_count=args.min_count,
                max_words=args.max_words,
                lowercase=args.lowercase,
            )
            started = time.perf_counter()
            vectors = method.vectors_of(text)
            write_static_vectors(text.words, vectors, output_file)
            seconds = time.perf_counter() - started
        num_words, dim = vectors.shape
        # A long word among the frequent ones is seldom a mark or an article.
        word = max(text.words[:MOST_FREQUENT], key=len)
        program = (
            "from gensim.models import KeyedVectors; "
            f"print(KeyedVectors.load_word2vec_format({json.dumps(args.output_file)})"
            f".most_similar({json.dumps(word, ensure_ascii=False)}))"
        )
        lines = closing_lines(
            [
                f"{counted(num_words, 'word')} of {dim:,} numbers, from "
                f"{counted(text.num_tokens, 'token')} in {duration(seconds)}"
            ],
            {"vectors": output_file},
            [shlex.join(["python", "-c", program])],
        )
        print("\n".join(lines))


def _method(args: argparse.Namespace) -> VectorMethod:
    """Builds the chosen method with the given settings."""
    kind = METHODS[args.method]
    given = vars(args)
    return kind(**{one.name: given[one.name] for one in fields(kind) if one.name in given})


def _reader(described: str) -> DatasetReader:
    """Builds a reader from its name, or from its config in JSON."""
    config = {"type": described}
    if described.lstrip().startswith("{"):
        try:
            config = json.loads(described)
        except json.JSONDecodeError as error:
            raise ConfigurationError(
                f"expected --reader to be JSON, but {described!r} is not ({error})"
            ) from None
    try:
        return DatasetReader.from_params(Params(config))
    except (OSError, TypeError, ValueError) as error:
        # Readers load files of their own, such as those of a tokenizer.
        raise ConfigurationError(" ".join(f"--reader {described}: {error}".split())) from error


def _check_output(
    output_file: Path, args: argparse.Namespace, reader: Optional[DatasetReader]
) -> None:
    """Checks the output before the work, rather than after it."""
    check_name(output_file)
    check_place(output_file)
    if not os.path.lexists(output_file):
        return
    inputs = list_shards(args.corpus) if reader is None else [Path(args.corpus)]
    is_file = output_file.exists()  # False for a dangling link
    if is_file and any(path.exists() and path.samefile(output_file) for path in inputs):
        raise ConfigurationError(f"{output_file}: the output would replace the input")
    if not args.overwrite:
        raise ConfigurationError(
            f"{output_file}: it is there already. Choose another name, or replace it with "
            "--overwrite."
        )
