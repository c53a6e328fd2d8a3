"""
`allennlp elmo-report`: shows what trainings have come to, as a page or as a PDF.
"""

import argparse
import sys
from pathlib import Path
from typing import Dict, Sequence

from allennlp.commands.subcommand import Subcommand
from allennlp.common.checks import ConfigurationError

from elmo_scratch.command_line.elmo_report import ELMO_REPORT
from elmo_scratch.commands.command_error import PackageSubcommand, check_arguments, command_errors
from elmo_scratch.files.atomic import check_place
from elmo_scratch.report import (
    Errors,
    Run,
    check_matplotlib,
    in_numbers,
    read_contents,
    report_of,
    surest_errors,
    write_page,
    write_pdf,
)
from elmo_scratch.report.errors import ARCHIVE, CLASSIFIER

WRITERS = {".html": write_page, ".pdf": write_pdf}
"""By the ends of names of files."""


@Subcommand.register("elmo-report")
class ElmoReport(PackageSubcommand):
    """Shows what trainings have come to; see `allennlp elmo-report --help`."""

    command_line = ELMO_REPORT

    def run(self, args: argparse.Namespace) -> None:
        with command_errors("elmo-report", args.output, is_verbose=args.verbose):
            check_arguments(ELMO_REPORT, args)
            output = Path(args.output)
            check_matplotlib()
            check_place(output)
            contents = read_contents([Path(name) for name in args.runs])
            for reason in contents.left_out:
                print(f"allennlp elmo-report: left out: {reason}", file=sys.stderr)
            errors = {} if args.errors is None else _errors(contents.runs, args.errors)
            WRITERS[output.suffix](report_of(contents, errors), output)
            print(f"{output}: a report of {in_numbers(contents)}")


def _errors(runs: Sequence[Run], data: str) -> Dict[Path, Errors]:
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
