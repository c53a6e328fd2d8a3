"""
`allennlp elmo-report`: shows what trainings have come to, as a page or as a PDF.
"""

import argparse
import sys
from pathlib import Path
from typing import Dict, List

from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError

from elmo_scratch.commands.command_error import command_errors
from elmo_scratch.files.atomic import check_place
from elmo_scratch.report import (
    Errors,
    Run,
    check_matplotlib,
    find_runs,
    read_run,
    report_of,
    surest_errors,
    write_page,
    write_pdf,
)
from elmo_scratch.report.errors import ARCHIVE, CLASSIFIER

DESCRIPTION = """
Writes a report of trainings: what was run, learning curves, metrics, precision, recall and F1 of
each class, confusion matrices, the course of the layers' weights, and comparisons of experiments
over their seeds. RUN is the output folder of `allennlp train`, of a biLM or of any other model,
finished or not; or a folder of such folders, as a study or a search has them. The page needs no
network and no other file.
"""

WRITERS = {".html": write_page, ".pdf": write_pdf}
"""By the ends of names of files."""


@Subcommand.register("elmo-report")
class ElmoReport(Subcommand):
    """Shows what trainings have come to; see `allennlp elmo-report --help`."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            help="Show what trainings have come to, as a page or as a PDF.",
        )
        subparser.add_argument(
            "runs",
            type=str,
            nargs="+",
            metavar="RUN",
            help="the output folder of a training, or a folder of such folders",
        )
        subparser.add_argument(
            "-o",
            "--output",
            type=str,
            required=True,
            metavar="FILE",
            help="the file to write; its name ends in .html or .pdf. A file that is there is "
            "replaced",
        )
        subparser.add_argument(
            "--errors",
            type=str,
            metavar="DATA",
            help="also show the errors in this data that each classifier is surest of, with their "
            "texts: the archives of the trainings classify it, by elmo_scratch_classifier",
        )
        subparser.set_defaults(func=report_from_args)
        return subparser


def report_from_args(args: argparse.Namespace) -> None:
    """Runs the command; raises as `command_errors` says."""
    with command_errors("elmo-report", args.output):
        output = Path(args.output)
        if output.suffix not in WRITERS:
            raise ConfigurationError(
                f"{output}: expected the name of a file that ends in {' or '.join(WRITERS)}"
            )
        check_matplotlib()
        check_place(output)
        runs: List[Run] = []
        left_out: List[str] = []
        for folder in [found for name in args.runs for found in find_runs(Path(name))]:
            try:
                runs.append(read_run(folder))
            except ConfigurationError as error:
                left_out.append(str(error.message))
        if not runs:
            raise ConfigurationError(left_out[0])
        for reason in left_out:
            print(f"allennlp elmo-report: left out: {reason}", file=sys.stderr)
        errors = {} if args.errors is None else _errors(runs, args.errors)
        WRITERS[output.suffix](report_of(runs, left_out, errors), output)
        print(f"{output}: a report of {len(runs)} training{'s' * (len(runs) > 1)}")


def _errors(runs: List[Run], data: str) -> Dict[Path, Errors]:
    """Of each training of a classifier that has left an archive; there has to be one."""
    classifiers = [
        run for run in runs if run.model_type == CLASSIFIER and (run.folder / ARCHIVE).is_file()
    ]
    if not classifiers:
        raise ConfigurationError(
            f"--errors needs a training of the model {CLASSIFIER} with a {ARCHIVE}, but there is "
            "none. Leave it out."
        )
    return {run.folder: surest_errors(run.folder, data) for run in classifiers}
