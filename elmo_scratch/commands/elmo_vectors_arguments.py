"""The arguments of `allennlp elmo-vectors`."""

import argparse
from dataclasses import fields
from typing import Any, Dict, Type

from elmo_scratch.static_vectors import PpmiSvd, VectorMethod, Word2Vec
from elmo_scratch.static_vectors.word2vec import ALGORITHMS

METHODS: Dict[str, Type[Any]] = {"word2vec": Word2Vec, "svd": PpmiSvd}
"""What `--method` names."""

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
"""What the settings of the methods mean."""


def add_arguments(subparser: argparse.ArgumentParser) -> None:
    """
    # Parameters

    subparser : `argparse.ArgumentParser`
        Of the command, where they are declared. The settings of methods are in the namespace only
        if they were given.
    """
    subparser.add_argument(
        "corpus",
        type=str,
        help="one sentence a line, words between spaces: a path, or a pattern such as "
        "'corpus/*.txt.gz'",
    )
    subparser.add_argument(
        "output_file", type=str, help="the text file to write, compressed if its name ends in .gz"
    )
    subparser.add_argument(
        "--method",
        choices=tuple(METHODS),
        required=True,
        help="word2vec, trained by gensim; or svd: positive mutual information of neighbours, in "
        "the dimensions that matter most",
    )
    subparser.add_argument("--overwrite", action="store_true", help="replace the output")
    subparser.add_argument(
        "--file-friendly-logging",
        action="store_true",
        help="print progress bars on lines of their own, and less often",
    )
    _add_the_text(subparser)
    shared = {field.name for field in fields(Word2Vec)} & {field.name for field in fields(PpmiSvd)}
    _add_settings(subparser.add_argument_group("both methods"), Word2Vec, shared)
    for name, method in METHODS.items():
        own = {field.name for field in fields(method)} - shared
        _add_settings(subparser.add_argument_group(f"--method {name}"), method, own)


def _add_the_text(subparser: argparse.ArgumentParser) -> None:
    """Declares what is read, and which words of it."""
    group = subparser.add_argument_group("the text")
    group.add_argument(
        "--reader",
        type=str,
        help="read the corpus by this DatasetReader, its name or JSON such as "
        '\'{"type": "ag_news", "use_title": true}\'; the tokens of each text field are a sentence',
    )
    group.add_argument("--lowercase", action="store_true", help="take words in lower case")
    group.add_argument(
        "--min-count",
        type=int,
        default=5,
        help="words that are rarer get no vector (default: 5)",
    )
    group.add_argument(
        "--max-words",
        type=int,
        help="at most so many words get one, the most frequent (default: all). The memory that svd "
        "needs grows with the pairs of them that are neighbours, some 50 bytes each",
    )


def _add_settings(group: Any, method: Type[VectorMethod], names: set) -> None:
    """Declares some of the settings of a method."""
    for field in fields(method):  # type: ignore[arg-type]
        if field.name in names:
            group.add_argument(
                f"--{field.name.replace('_', '-')}",
                type=type(field.default),
                choices=ALGORITHMS if field.name == "algorithm" else None,
                default=argparse.SUPPRESS,
                help=f"{MEANINGS[field.name]} (default: {field.default})",
            )
