"""The arguments of `allennlp elmo-vectors`."""

import argparse
from typing import Any, Dict, Tuple

from elmo_scratch.command_line.command_line import CommandLine

SETTINGS: Dict[str, Dict[str, Tuple[Any, str]]] = {
    "both methods": {
        "dim": (300, "numbers of a vector"),
        "window": (5, "how far apart two words may be, at most, to count as neighbours"),
        "seed": (0, "of all random numbers"),
    },
    "word2vec": {
        "algorithm": (
            "skip-gram",
            "predict the words around a word (skip-gram), or the word from them (cbow)",
        ),
        "epochs": (5, "how often the text is read"),
        "negatives": (5, "random words that each true neighbour is told from"),
        "sample": (
            0.001,
            "words that make up a larger share of the text are passed over at times; 0 keeps all",
        ),
        "learning_rate": (0.025, "at the beginning; it falls to 0.0001"),
        "threads": (
            1,
            "processor threads; with more than one the vectors are not the same each time",
        ),
    },
    "svd": {
        "shift": (1.0, "its logarithm is subtracted from the mutual information of two words"),
        "smoothing": (0.75, "the power that the counts of neighbours are raised to"),
        "exponent": (0.5, "the power that the singular values are raised to"),
    },
}
"""For each method its settings, by name: the default and the help."""

METHODS = ("word2vec", "svd")

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
        "choices": METHODS,
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


DESCRIPTION = """
Trains one vector a word and writes a text file in the format of word2vec. AllenNLP's token embedder
`embedding` and the language model `elmo_scratch_bilm` read it as their `pretrained_file`, gensim by
KeyedVectors.load_word2vec_format. The file appears when it is whole. The same text, settings and
seed give the same vectors, unless word2vec gets more than one thread.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    for name, declared in ARGUMENTS.items():
        parser.add_argument(name, **declared)
    text = parser.add_argument_group("the text")
    for name, declared in TEXT_ARGUMENTS.items():
        text.add_argument(name, **declared)
    for owner, settings in SETTINGS.items():
        group = parser.add_argument_group(f"--method {owner}" if owner in METHODS else owner)
        for name, (default, meaning) in settings.items():
            # The namespace has a method's setting only if it was given.
            group.add_argument(
                option(name),
                type=type(default),
                choices=("skip-gram", "cbow") if name == "algorithm" else None,
                default=argparse.SUPPRESS,
                help=f"{meaning} (default: {default})",
            )


def option(name: str) -> str:
    """How a setting is typed."""
    return f"--{name.replace('_', '-')}"


def mistake_in(args: argparse.Namespace) -> str:
    """Names a setting that belongs to another method; `""` if there is none."""
    for other in METHODS:
        for name in SETTINGS[other]:
            if name in args and other != args.method:
                return (
                    f"{option(name)} is a setting of --method {other}, and the method is "
                    f"{args.method}. Leave it out."
                )
    return ""


ELMO_VECTORS = CommandLine(
    "elmo-vectors",
    "Train static word vectors on a text, by word2vec or by counting.",
    DESCRIPTION,
    add_arguments,
    mistake_in,
)
"""The command line of `allennlp elmo-vectors`."""
