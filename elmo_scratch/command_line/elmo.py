"""The arguments of `allennlp elmo` and `allennlp elmo-join`."""

import argparse
from typing import Any, Dict

from elmo_scratch.command_line.command_line import TOKENIZE, TRUST, CommandLine

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
        "choices": ("mean", "max"),
        "help": "one vector a sentence: the mean or maximum over its tokens",
    },
    "--dtype": {
        "choices": ("float32", "float16"),
        "default": "float32",
        "help": "of the numbers (default: float32)",
    },
    "--compression": {"choices": ("gzip", "lzf"), "help": "of the data sets"},
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
        "original model); or, alone, the archive of a trained biLM or of a task with one in it "
        "(model.tar.gz), a model folder, the name of a released model (small, medium, original, "
        "original-5.5B, pt, pubmed), or a folder or .zip with both official files "
        "or a model of ELMoForManyLangs",
    },
    "--state": {
        "choices": ("carry", "reset", "warm"),
        "default": "carry",
        "help": "what a sentence starts from. carry (default): from where the one of the same "
        "place in the batch before ended, as the original does. reset: from zeros. warm: from "
        "where a text to warm up with ended. With reset and warm vectors depend on nothing else",
    },
    "--warm-up-file": {
        "type": str,
        "help": "with --state warm: that text, cut by --tokenize too (default: if an archive comes "
        f"with such a state, that state; otherwise {WARM_UP_SENTENCES} sentences of the input, the "
        "same ones whatever the order of its lines)",
    },
    "--vocab-path": {
        "type": str,
        "help": "a file with one word a line, whose vectors are computed ahead",
    },
    "--matmul-dtype": {
        "choices": ("float32", "bfloat16"),
        "default": "float32",
        "help": "the precision of matrix products (default: float32); bfloat16 is used where the "
        "processor is faster with it",
    },
    "--trust": TRUST,
}
"""The arguments for the biLM and how it reads the text."""

RUN: Dict[str, Dict[str, Any]] = {
    "--input-format": {
        "choices": ("text", "conllu", "jsonl"),
        "help": "of the input (default: by its ending, .conllu or .jsonl, else text). text: a "
        "sentence a line, its tokens between white space. conllu: the words of a treebank, without "
        'multiword tokens and empty nodes. jsonl: {"tokens": ["New York", "sleeps"]} a line',
    },
    "--tokenize": TOKENIZE,
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
        "choices": ("local", "ray"),
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

DESCRIPTION = """
Reads one sentence a line, its tokens between white space or cut by --tokenize, or a treebank in
CoNLL-U, or JSON lines, and writes an HDF5 file with one data set a sentence. Its key is the number
of the sentence, from "0"; the data set `sentence_to_index` holds a JSON map from each sentence to
its key. The file appears when it is whole; until then what is done lies beside it, in OUTPUT.parts,
for --resume.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `elmo` to a parser."""
    parser.add_argument(
        "input_file", type=str, help="the text, one sentence a line; - for standard input"
    )
    parser.add_argument("output_file", type=str, help="the HDF5 file to write")
    written = parser.add_argument_group("what is written")
    kept = written.add_mutually_exclusive_group(required=True)
    for choice, meaning in KEPT_MEANINGS.items():
        kept.add_argument(
            f"--{choice}", dest="kept", action="store_const", const=choice, help=meaning
        )
    model = parser.add_argument_group("the model")
    run = parser.add_argument_group("how it runs")
    for group, arguments in ((written, WRITTEN), (model, MODEL), (run, RUN)):
        for name, declared in arguments.items():
            group.add_argument(name, **declared)


def mistake_in(args: argparse.Namespace) -> str:
    """Tells which arguments don't go together, in a sentence; `""` if all do."""
    if args.workers is not None and args.engine != "ray":
        return "--workers needs --engine ray: one process does the work otherwise"
    return ""


ELMO = CommandLine(
    "elmo",
    "Write the vectors of each layer of a biLM for the sentences of a text file.",
    DESCRIPTION,
    add_arguments,
    mistake_in,
)
"""The command line of `allennlp elmo`."""

JOIN_DESCRIPTION = """
Writes OUTPUT from OUTPUT.1-of-N ... OUTPUT.N-of-N, which `allennlp elmo --shard I/N` wrote beside
it. The result is the same as if one process had written it all.
"""


def _add_join_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `elmo-join` to a parser."""
    parser.add_argument("output_file", type=str, help="the HDF5 file to write")
    parser.add_argument(
        "--remove-shards", action="store_true", help="remove their files when OUTPUT is whole"
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace another file of that name"
    )


ELMO_JOIN = CommandLine(
    "elmo-join",
    "Make one file of the files that `allennlp elmo --shard` wrote.",
    JOIN_DESCRIPTION,
    _add_join_arguments,
)
"""The command line of `allennlp elmo-join`."""
