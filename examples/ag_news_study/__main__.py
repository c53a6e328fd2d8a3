"""
Which way of combining the layers of a biLM classifies AG News best, by how much, and against what:

    python examples/ag_news_study train.csv dev.csv --folder runs/study

pre-trains three biLMs and two sets of word vectors on the descriptions of train.csv, and trains
the classifier of training_config/ag_news/study.jsonnet on each with every mix and several seeds.
Then it pre-trains a biLM on titles too, and trains the best classifiers there are. It writes
study.md and study.json, with all rows that are there, chosen now or before. Started again after it
was stopped, it goes on where it was.
"""

import argparse
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Dict

from filelock import FileLock, Timeout
from plan import chosen_tasks, planned_tasks, seeds_there
from results import collected, support_vector_machine
from table import markdown, write_json
from tasks import run_all

from elmo_scratch.search import interrupted_by_signals
from elmo_scratch.terminated import Terminated
from elmo_scratch.whole_file import whole_file


def main() -> None:
    """Runs what has not been run yet, and writes the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train", type=Path, help="an AG News file to train on")
    parser.add_argument("dev", type=Path, help="an AG News file to measure on")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each kind (default: 5)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="trainings at a time, at most, each with its share of the cores (default: one a core)",
    )
    parser.add_argument(
        "--overrides",
        type=_settings,
        default={},
        metavar="JSON",
        help="for every training, as `allennlp train` takes them: "
        "'{\"trainer.num_epochs\": 1}' tries the study out",
    )
    parser.add_argument(
        "--only",
        type=_pattern,
        metavar="REGEX",
        default="",
        help="the rows in whose part and name it is found: 'mixes: words, ' tells those of the "
        "biLM of words, '^titles' the best classifiers of titles and descriptions (default: all)",
    )
    args = parser.parse_args()
    for path in (args.train, args.dev):
        if not path.is_file():
            parser.error(f"there is no file {path}")
    if args.seeds < 1 or args.jobs < 1:
        parser.error("expected at least one of `--seeds` and of `--jobs`")
    planned = planned_tasks(args.train, args.dev, args.folder, args.seeds, args.overrides)
    tasks = chosen_tasks(planned, args.only)
    if not tasks:
        rows = sorted({f"{task.part}: {task.row}" for task in planned if task.row})
        parser.error(f"`--only {args.only}` is found in no row. They are:\n" + "\n".join(rows))
    others = [task for task in tasks if task.is_another()]
    if others:
        parser.error(
            f"{others[0].folder} holds what other settings have made ({len(others)} of "
            f"{len(tasks)} such). Take another folder, or remove those"
        )
    args.folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(args.folder / ".lock", timeout=0), interrupted_by_signals():
            failed = run_all(tasks, args.jobs)
    except Timeout:
        parser.error(f"another study works in {args.folder}")
    except KeyboardInterrupt as error:
        print("interrupted: the same command goes on with it", file=sys.stderr)
        sys.exit(128 + (error.number if isinstance(error, Terminated) else signal.SIGINT))
    except OSError as error:
        sys.exit(f"{error}: the same command goes on with it")
    seeds = max(args.seeds, seeds_there(args.folder))
    there = planned_tasks(args.train, args.dev, args.folder, seeds, args.overrides)
    rows = collected([task for task in there if not task.is_another()])
    for part in {row.part: row for row in rows}:
        rows.append(support_vector_machine(args.train, args.dev, part, part == "titles"))
    write_json(rows, args.folder / "study.json")
    table = markdown(rows)
    with whole_file(args.folder / "study.md") as part:
        part.write_text(table, encoding="utf-8")
    print(table)
    if failed:
        names = ", ".join(failed)
        sys.exit(
            f"{len(failed)} of {len(tasks)} did not end: {names}. Their logs are in {args.folder}"
        )


def _settings(text: str) -> Dict[str, object]:
    """A JSON object."""
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, but got {text}")
    return settings


def _pattern(text: str) -> str:
    """A regular expression."""
    try:
        re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {error}") from None
    return text


if __name__ == "__main__":
    main()
