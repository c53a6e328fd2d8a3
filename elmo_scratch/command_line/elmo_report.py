"""The arguments of `allennlp elmo-report`."""

import argparse

from elmo_scratch.command_line.command_line import CommandLine

KINDS = (".html", ".pdf")

DESCRIPTION = """
Writes a report of trainings: what was run, learning curves, metrics, precision, recall and F1 of
each class, confusion matrices, the course of the layers' weights, and comparisons of experiments
over their seeds. RUN is the output folder of `allennlp train`, of a biLM or of any other model,
finished or not; a folder of such folders, as a study or a search has them; the result file of a
study, such as examples/ag_news_study/study.json; or a file of layers that `allennlp elmo` wrote.
The page needs no network and no other file.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to a parser."""
    parser.add_argument(
        "runs",
        type=str,
        nargs="+",
        metavar="RUN",
        help="the output folder of a training, a folder of such folders, the result file of a "
        "study, or a file of layers",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=str,
        required=True,
        metavar="FILE",
        help="the file to write; its name ends in .html or .pdf. A file that is there is replaced",
    )
    parser.add_argument(
        "--errors",
        type=str,
        metavar="DATA",
        help="also show the errors in this data that each classifier is surest of, with their "
        "texts: the archives of the trainings classify it, by elmo_scratch_classifier",
    )


def mistake_in(args: argparse.Namespace) -> str:
    """Refuses the name of a file of another kind; `""` if there is nothing to refuse."""
    if not args.output.endswith(KINDS):
        return f"{args.output}: expected the name of a file that ends in {' or '.join(KINDS)}"
    return ""


ELMO_REPORT = CommandLine(
    "elmo-report",
    "Show what trainings have come to, as a page or as a PDF.",
    DESCRIPTION,
    add_arguments,
    mistake_in,
)
"""The command line of `allennlp elmo-report`."""
