"""The arguments of `allennlp elmo`: those of AllenNLP 0.9, and what goes beyond them."""

import argparse

from elmo_scratch.export.plan import DTYPES, POOLS
from elmo_scratch.interop.layer_files.writer import COMPRESSIONS
from elmo_scratch.kernels.precision import MATMUL_DTYPES
from elmo_scratch.modules.state_memory import STATES

ENGINES = ("local", "ray")

STANDARD_INPUT = "-"

WARM_UP_SENTENCES = 100
"""How many sentences of a text warm the biLM up if no other text is given."""


def add_arguments(subparser: argparse.ArgumentParser) -> None:
    """
    # Parameters

    subparser : `argparse.ArgumentParser`
        Of the command, where they are declared.
    """
    subparser.add_argument(
        "input_file", type=str, help="the text, one sentence a line; - for standard input"
    )
    subparser.add_argument("output_file", type=str, help="the HDF5 file to write")
    _add_what_is_written(subparser)
    _add_the_model(subparser)
    _add_how_it_runs(subparser)


def _add_what_is_written(subparser: argparse.ArgumentParser) -> None:
    """Declares what the output holds."""
    group = subparser.add_argument_group("what is written")
    kept = group.add_mutually_exclusive_group(required=True)
    for choice, meaning in (
        ("all", "all layers: (layers, tokens, width)"),
        ("top", "the last layer: (tokens, width)"),
        ("average", "the mean of the layers: (tokens, width)"),
    ):
        kept.add_argument(
            f"--{choice}", dest="kept", action="store_const", const=choice, help=meaning
        )
    group.add_argument(
        "--pool", choices=POOLS, help="one vector a sentence: the mean or maximum over its tokens"
    )
    group.add_argument(
        "--dtype", choices=DTYPES, default="float32", help="of the numbers (default: float32)"
    )
    group.add_argument("--compression", choices=COMPRESSIONS, help="of the data sets")
    group.add_argument(
        "--use-sentence-keys",
        action="store_true",
        help="make each sentence the key of its vectors, in place of the number of its line",
    )
    group.add_argument(
        "--forget-sentences", action="store_true", help="leave sentence_to_index out"
    )


def _add_the_model(subparser: argparse.ArgumentParser) -> None:
    """Declares which biLM reads the text, and how."""
    group = subparser.add_argument_group("the model")
    group.add_argument(
        "--options-file",
        type=str,
        help="an official options.json, a path or an address (default: that of the released "
        "original model)",
    )
    group.add_argument(
        "--weight-file",
        type=str,
        help="an official weights.hdf5, a path or an address (default: that of the released "
        "original model); or, alone, the archive of a trained biLM (model.tar.gz)",
    )
    group.add_argument(
        "--state",
        choices=STATES,
        default="carry",
        help="what a sentence starts from. carry (default): from where the one of the same place "
        "in the batch before ended, as the original does. reset: from zeros. warm: from where a "
        "text to warm up with ended. With reset and warm vectors depend on nothing else",
    )
    group.add_argument(
        "--warm-up-file",
        type=str,
        help="with --state warm: that text (default: if an archive comes with such a state, that "
        f"state; otherwise {WARM_UP_SENTENCES} sentences of the input, the same ones whatever the "
        "order of its lines)",
    )
    group.add_argument(
        "--vocab-path",
        type=str,
        help="a file with one word a line, whose vectors are computed ahead",
    )
    group.add_argument(
        "--matmul-dtype",
        choices=MATMUL_DTYPES,
        default="float32",
        help="the precision of matrix products (default: float32); bfloat16 is used where the "
        "processor is faster with it",
    )


def _add_how_it_runs(subparser: argparse.ArgumentParser) -> None:
    """Declares how the work is done."""
    group = subparser.add_argument_group("how it runs")
    group.add_argument("--batch-size", type=int, default=64, help="sentences a batch (default: 64)")
    group.add_argument(
        "--max-tokens",
        type=int,
        help="fill batches up to so many tokens instead (with --state reset or warm)",
    )
    group.add_argument(
        "--cuda-device", type=int, default=-1, help="the number of a GPU, or -1 for the processor"
    )
    group.add_argument(
        "--resume", action="store_true", help="go on with what an interrupted run has left"
    )
    group.add_argument(
        "--overwrite", action="store_true", help="replace the output, and what was left of it"
    )
    group.add_argument(
        "--shard",
        type=str,
        metavar="I/N",
        help="do only the I-th of N parts, I from 1, and write OUTPUT.I-of-N; allennlp elmo-join "
        "makes one file of them (with --state reset or warm)",
    )
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="ray: share the work among the workers of a Ray cluster, that of RAY_ADDRESS or one "
        "on this machine (with --state reset or warm)",
    )
    group.add_argument(
        "--workers",
        type=int,
        help="with --engine ray: how many (default: one for each processor, or GPU, that is free)",
    )
    group.add_argument(
        "--file-friendly-logging",
        action="store_true",
        help="print the progress bar on lines of its own, and less often",
    )
