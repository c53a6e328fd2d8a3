"""
`allennlp elmo-vectors`: trains static word vectors on a text, one vector a word.
"""

import argparse
import json
import logging
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, Dict, Optional, Type

from allennlp.commands.subcommand import Subcommand
from allennlp.common import Params
from allennlp.common import logging as common_logging
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader

from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.data.corpus import list_shards
from elmo_scratch.files.atomic import check_place
from elmo_scratch.interop.static_vectors import check_name, write_static_vectors
from elmo_scratch.static_vectors import NumberedText, PpmiSvd, VectorMethod, VectorText, Word2Vec
from elmo_scratch.static_vectors.word2vec import ALGORITHMS

METHODS: Dict[str, Type[Any]] = {"word2vec": Word2Vec, "svd": PpmiSvd}
"""The methods by their names for `--method`."""

MEANINGS = {
    "dim": "numbers of a vector",
    "window": "how far apart two words may be, at most, to count as neighbours",
    "seed": "of all random numbers",
    "algorithm": "predict the words around a word (skip-gram), or the word from them (cbow)",
    "epochs": "how often the text is read",
    "negatives": "random words that each true neighbour is told from",
    "sample": "words that make up a larger share of the text are passed over at times; 0 keeps all",
    "learning_rate": "at the beginning; it falls to 0.0001",
    "threads": "processor threads; with more than one the vectors are not the same each time",
    "shift": "its logarithm is subtracted from the mutual information of two words",
    "smoothing": "the power that the counts of neighbours are raised to",
    "exponent": "the power that the singular values are raised to",
}
"""The help for the settings of the methods."""


ARGUMENTS: Dict[str, Dict[str, Any]] = {
    "corpus": {
        "type": str,
        "help": "one sentence a line, words between spaces: a path, or a pattern such as "
        "'corpus/*.txt.gz'",
    },
    "output_file": {
        "type": str,
        "help": "the text file to write, compressed if its name ends in .gz",
    },
    "--method": {
        "choices": tuple(METHODS),
        "required": True,
        "help": "word2vec, trained by gensim; or svd: positive mutual information of neighbours, "
        "in the dimensions that matter most",
    },
    "--overwrite": {"action": "store_true", "help": "replace the output"},
    "--file-friendly-logging": {
        "action": "store_true",
        "help": "print progress bars on lines of their own, and less often",
    },
}
"""The arguments for all methods and texts."""

TEXT_ARGUMENTS: Dict[str, Dict[str, Any]] = {
    "--reader": {
        "type": str,
        "help": "read the corpus by this DatasetReader, its name or JSON such as "
        '\'{"type": "ag_news", "use_title": true}\'; the tokens of each text field are a sentence',
    },
    "--lowercase": {"action": "store_true", "help": "take words in lower case"},
    "--min-count": {
        "type": int,
        "default": 5,
        "help": "words that are rarer get no vector (default: 5)",
    },
    "--max-words": {
        "type": int,
        "help": "at most so many words get one, the most frequent (default: all). The memory that "
        "svd needs grows with the pairs of them that are neighbours, some 50 bytes each",
    },
}
"""The arguments for the text, and for the words of it that get vectors."""


logger = logging.getLogger(__name__)

DESCRIPTION = """
Trains one vector a word and writes a text file in the format of word2vec. AllenNLP's token embedder
`embedding` and the language model `elmo_scratch_bilm` read it as their `pretrained_file`, gensim by
KeyedVectors.load_word2vec_format. The file appears when it is whole. The same text, settings and
seed give the same vectors, unless word2vec gets more than one thread.
"""


@Subcommand.register("elmo-vectors")
class ElmoVectors(Subcommand):
    """Trains static word vectors; see `allennlp elmo-vectors --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            help="Train static word vectors on a text, by word2vec or by counting.",
        )
        for name, declared in ARGUMENTS.items():
            subparser.add_argument(name, **declared)
        text = subparser.add_argument_group("the text")
        for name, declared in TEXT_ARGUMENTS.items():
            text.add_argument(name, **declared)
        settings = {
            method: {field.name: field for field in fields(METHODS[method])} for method in METHODS
        }
        shared = set.intersection(*map(set, settings.values()))
        titles = {"both methods": "word2vec", **{f"--method {name}": name for name in METHODS}}
        for title, method in titles.items():
            group = subparser.add_argument_group(title)
            for name, field in settings[method].items():
                if (name in shared) == (title == "both methods"):
                    # The namespace has a method's setting only if it was given.
                    group.add_argument(
                        f"--{name.replace('_', '-')}",
                        type=type(field.default),
                        choices=ALGORITHMS if name == "algorithm" else None,
                        default=argparse.SUPPRESS,
                        help=f"{MEANINGS[name]} (default: {field.default})",
                    )
        subparser.set_defaults(func=vectors_from_args)
        return subparser


def vectors_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    if args.file_friendly_logging:
        common_logging.FILE_FRIENDLY_LOGGING = True
    # gensim logs its progress every second, which the progress bar shows already.
    logging.getLogger("gensim").setLevel(logging.WARNING)
    with command_errors("elmo-vectors", args.output_file):
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
        vectors = method.vectors_of(text)
        write_static_vectors(text.words, vectors, output_file)
        logger.info("%s: %d words of %d numbers", output_file, *vectors.shape)


def _method(args: argparse.Namespace) -> VectorMethod:
    """Builds the chosen method with the given settings; refuses settings of another method."""
    given = vars(args)
    own = {field.name for field in fields(METHODS[args.method])}
    for other, method in METHODS.items():
        for name in (field.name for field in fields(method)):
            if name in given and name not in own:
                raise ConfigurationError(
                    f"--{name.replace('_', '-')} is a setting of --method {other}, and the method "
                    f"is {args.method}. Leave it out."
                )
    return METHODS[args.method](**{name: given[name] for name in own if name in given})


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
