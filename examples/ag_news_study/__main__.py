"""
Which way of combining the layers of a biLM classifies AG News best, by how much, and against what:

    python examples/ag_news_study train.csv dev.csv --folder runs/study

pre-trains three biLMs and two sets of word vectors on the descriptions of train.csv, and trains
the classifier of training_config/ag_news/study.jsonnet on each with five mixes and several seeds.
Then it pre-trains a biLM on titles too, and trains the best classifiers there are. It writes
study.md, study.json, report.html and report.pdf, with all rows that are there, chosen now or
before. It says first how long that takes: a day of one core; `--quick` takes an hour. Started
again after it was stopped, it goes on where it was; in another folder or on another machine, with
`--results study.json` of the first, it trains what that lacks.
"""

import argparse
import sys
from pathlib import Path
from typing import List

from allennlp.common.checks import ConfigurationError
from command_line import failures, json_object, pattern
from expected import expected_seconds, tell_time
from plan import QUICK, chosen_tasks, planned_tasks, seeds_there
from report import write_reports
from results import Row, collected, support_vector_machine
from results_file import NAMES, read_trainings, write_results
from table import markdown

from elmo_scratch.data.readers import AgNewsRow, ag_news_rows
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.report import check_matplotlib
from elmo_scratch.search.tasks import add_jobs, check_settings, run_all, study_in


def _parser() -> argparse.ArgumentParser:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train", type=Path, help="an AG News file to train on")
    parser.add_argument("dev", type=Path, help="an AG News file to measure on")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument(
        "--seeds", type=int, help="trainings of each kind (default: 5, of `--quick` 1)"
    )
    add_jobs(parser)
    parser.add_argument(
        "--overrides",
        type=json_object,
        default={},
        metavar="JSON",
        help="for every training, of biLMs too, but not for what makes a row what it is: "
        "'{\"trainer.num_epochs\": 1}' tries the study out",
    )
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument(
        "--only",
        type=pattern,
        metavar="REGEX",
        default="",
        help="the rows in whose part and name it is found: 'mixes: words, ' tells those of the "
        "biLM of words, '^titles' the best classifiers of titles and descriptions (default: all)",
    )
    rows.add_argument(
        "--quick",
        action="store_const",
        dest="only",
        const=QUICK,
        help="the five mixes over one biLM, word2vec and SVD, with one seed: in about an hour on "
        "two cores",
    )
    parser.add_argument(
        "--results",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a study.json from another folder or machine: what it has is not trained again, and "
        "stands in the results (as often as there are such files)",
    )
    return parser


def main() -> None:
    """Runs what has not been run yet, and writes the results."""
    parser = _parser()
    args = parser.parse_args()
    num_seeds = args.seeds if args.seeds is not None else 1 if args.only == QUICK else 5
    if num_seeds < 1 or args.jobs < 1:
        parser.error("expected at least one of `--seeds` and of `--jobs`")
    data = args.train, args.dev
    try:
        check_matplotlib()
        train, dev = (list(ag_news_rows(path)) for path in data)
        known = {key: one for path in args.results for key, one in read_trainings(path).items()}
        wanted = set(range(num_seeds))
        planned = planned_tasks(*data, args.folder, sorted(wanted), args.overrides)
        # With all seeds that are there: they stay in the results.
        seeds = wanted | seeds_there(args.folder) | {one.seed for one in known.values()}
        there = planned_tasks(*data, args.folder, sorted(seeds), args.overrides)
    except ConfigurationError as error:
        parser.error(error.message)
    if not chosen_tasks(planned, args.only):
        names = sorted({f"{task.part}: {task.row}" for task in planned if task.row})
        parser.error(f"`--only {args.only}` is found in no row. They are:\n" + "\n".join(names))
    if strangers := known.keys() - {task.fingerprint() for task in there}:
        files = ", ".join(map(str, args.results))
        parser.error(
            f"of the {len(known)} trainings in {files} {len(strangers)} have other settings, texts "
            "or overrides than any of this study"
        )
    unknown = [task for task in planned if task.fingerprint() not in known]
    tasks = chosen_tasks(unknown, args.only)
    with study_in(args.folder, parser):
        check_settings(there, parser)
        if not args.overrides:
            tell_time(tasks, expected_seconds(tasks, len(train)), args.jobs)
        undone = run_all(tasks, args.jobs)
        rows = collected(there, known)
        _write_results(rows, args.folder, train, dev)
        if rows:
            page, pdf = write_reports(rows, there, args.folder, args.dev)
            print(f"\ntables  {args.folder / 'study.md'}\nreport  {page}\n        {pdf}")
    if undone.failed:
        sys.exit(failures(undone, len(tasks), args.folder))


def _write_results(
    rows: List[Row], folder: Path, train: List[AgNewsRow], dev: List[AgNewsRow]
) -> None:
    """Writes and prints the table of all rows that are there, if there is one."""
    if not rows:
        return
    for part in dict.fromkeys(row.part for row in rows):
        rows.append(support_vector_machine(train, dev, part, part == "titles"))
    write_results(rows, folder / NAMES["study"])
    table = markdown(rows)
    with atomic_write(folder / "study.md") as written:
        written.write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
