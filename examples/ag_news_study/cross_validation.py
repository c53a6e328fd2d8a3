"""
How well the best classifiers of the study do on texts that have chosen nothing:

    python examples/ag_news_study/cross_validation.py train.csv dev.csv --folder runs/folds

draws five folds of both files together; texts that tell the same news stay in one. Each text is
measured once, by classifiers that were trained on the other four folds, of which a tenth chose the
epoch. Word vectors and biLMs read no text of the fold that is measured. folds.md has the tables,
folds.json every number. With several `--seeds` a row that was trained has another one beside it,
if one folder has all its seeds: the classifiers answer together, by the mean of their
probabilities.

It says first how long it takes: a day of one core with biLMs; `--only 'no biLM'` is done in
about two hours of one. Started again after it was stopped, it goes on where it was.
"""

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from statistics import mean, stdev
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import numpy
from allennlp.common import FromParams
from allennlp.common.checks import ConfigurationError
from bag_of_words import bag_of_words
from command_line import failures, json_object, pattern
from expected import expected_seconds, tell_time
from folds import SIMILAR, Fold, drawn_folds, same_news
from part import write_rows
from plan import ALLENNLP, BEST, WITHOUT, chosen_tasks, planned_tasks
from results_file import NAMES, read_numbers
from training import training_of

from elmo_scratch.data.readers import AgNewsRow, ag_news_rows
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.files.identity import identity_of
from elmo_scratch.search.tasks import Task, add_jobs, check_settings, run_all, study_in

SVM = "TF-IDF, linear SVM"
"""The row that scikit-learn reaches, of both parts."""

DEFAULT = "(no|frozen) biLM"
"""The rows that are measured where none are named: all but biLMs that are trained on."""

ANSWERS = "answers.jsonl"
"""The answers of a classifier to the texts of a fold, in their order."""

TOGETHER = ", seeds together"
"""What the row ends in whose probabilities are the mean of those of several seeds."""

MEASURING = ", measured"
"""What the name of a task that measures a fold ends in."""

SECONDS_OF_MEASURING = 30.0

NOTE = (
    "Accuracy: the mean over the folds ± its standard error, from their standard deviation; each "
    "fold counts with the mean of its seeds. Over no biLM: the mean difference to that row in the "
    "same folds ± its standard error. The standard error that comes from the number of texts alone "
    "is {texts:.2f} points. Folds share what they train on, so that standard errors are somewhat "
    "too small. Settings were chosen on dev, a ninth of these texts, before."
)

NOTE_ON_SEVERAL = (
    " Seeds together: the mean of their probabilities answers, so that such a row is a model of "
    "several times the size."
)


@dataclass(frozen=True)
class Measured(FromParams):
    """
    One row in one fold, with one seed, or with several together.

    # Parameters

    part, row : `str`
        As in `Task`.
    fold, seed : `int`
        From 1; from 0.
    accuracy : `float`
        Of the fold.
    choosing : `float`, optional (default = `None`)
        Of the texts that chose the epoch, after that epoch; `None` where nothing is chosen.
    settings : `str`, optional (default = `""`)
        `Task.fingerprint` of what measured it, with all that the training was; of several seeds
        together those of all, between spaces; empty where nothing is kept of it.
    num_together : `int`, optional (default = `1`)
        The mean of so many classifiers' probabilities answered.
    """

    part: str
    row: str
    fold: int
    seed: int
    accuracy: float
    choosing: Optional[float] = None
    settings: str = ""
    num_together: int = 1


def read_rows(files: Sequence[Path]) -> List[AgNewsRow]:
    """The rows of all files; raises `ConfigurationError` as `ag_news_rows` does."""
    return [row for path in files for row in ag_news_rows(path)]


def write_fold(fold: Fold, folder: Path) -> None:
    """Writes the three files of a fold, but for those that are there as they would be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in fold._asdict().items():
        path = folder / f"{name}.csv"
        if not path.exists() or list(ag_news_rows(path)) != rows:
            write_rows(rows, path)


def fold_tasks(
    folder: Path, number: int, seeds: Sequence[int], overrides: Dict[str, object]
) -> List[Task]:
    """
    # Parameters

    folder : `Path`
        That of a fold, with its files.
    number : `int`
        The fold's, from 1.
    seeds, overrides
        As in `planned_tasks`.

    # Returns

    `List[Task]`
        The trainings of the best classifiers, what they need, and after each a task of the same row
        that measures the fold.
    """
    planned = planned_tasks(folder / "train.csv", folder / "choosing.csv", folder, seeds, overrides)
    measured = folder / "measured.csv"
    digests = identity_of([measured])
    fold = f"fold {number}, "
    tasks = []
    for task in chosen_tasks(planned, f"^({'|'.join(BEST)}): "):
        name = fold + task.name
        tasks.append(task._replace(name=name, needs=[fold + need for need in task.needs]))
        if task.row:
            place = task.folder / "measured"
            command = [*ALLENNLP, "predict", str(task.folder / "run" / "model.tar.gz")]
            command += [str(measured), "--use-dataset-reader", "--batch-size", "32", "--silent"]
            command += ["--output-file", str(place / ANSWERS)]
            settings = {"fold": number, "training": task.settings, "texts": digests}
            last = name + MEASURING
            tasks.append(Task(last, task.part, task.row, command, {}, place, [name], settings))
    return tasks


class Answers(NamedTuple):
    """
    What a classifier answered to the texts of a fold.

    # Parameters

    classes : `List[str]`
        In the order of their names.
    probabilities : `numpy.ndarray`
        Shape `(texts, classes)`, in the order of the texts.
    """

    classes: List[str]
    probabilities: numpy.ndarray

    def accuracy(self, rows: Sequence[AgNewsRow]) -> float:
        """The share of texts whose class is the most probable one."""
        found = self.probabilities.argmax(axis=1)
        true = [self.classes.index(row.label) for row in rows]
        return float(numpy.mean(found == true))


def read_answers(task: Task, num_texts: int) -> Answers:
    """
    What a task that measures a fold has written. Raises `ConfigurationError` unless those are
    answers to so many texts.
    """
    file = task.folder / ANSWERS
    lines = file.read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line)["probabilities"] for line in lines]
    if len(answers) != num_texts:
        raise ConfigurationError(
            f"{file}: expected an answer to each of {num_texts} texts, but there are "
            f"{len(answers)}. Do the overrides leave texts out?"
        )
    classes = sorted(answers[0])
    return Answers(classes, numpy.array([[one[name] for name in classes] for one in answers]))


def measured_in(
    tasks: Sequence[Task], folds: Sequence[Fold], known: Mapping[str, Measured]
) -> List[Measured]:
    """
    # Parameters

    tasks : `Sequence[Task]`
        Those of `fold_tasks`, of all folds.
    folds : `Sequence[Fold]`
        All of them, in their order.
    known : `Mapping[str, Measured]`
        By their settings, what counts as done elsewhere.

    # Returns

    `List[Measured]`
        What has been measured so far, in the order of the tasks. After the last seed of a row in a
        fold come all its seeds together, if there are several, and one folder has all of them.
    """
    trainings = {task.name: task for task in tasks if task.is_training}
    found = []
    for group in _seeds_of(tasks):
        answers: List[Answers] = []
        number, part, row = group[0].settings["fold"], group[0].part, group[0].row
        texts = folds[number - 1].measured
        for task in group:
            settings = task.fingerprint()
            if task.is_done:
                answers.append(read_answers(task, len(texts)))
                training = training_of(trainings[task.needs[0]])
                accuracies = answers[-1].accuracy(texts), training.scores["accuracy"]
                found.append(Measured(part, row, number, training.seed, *accuracies, settings))
            elif settings in known:
                found.append(known[settings])
        together = " ".join(task.fingerprint() for task in group)
        if len(answers) == len(group) > 1:
            mean_answer = numpy.mean([one.probabilities for one in answers], axis=0)
            accuracy = answers[0]._replace(probabilities=mean_answer).accuracy(texts)
            name = row + TOGETHER
            found.append(Measured(part, name, number, 0, accuracy, None, together, len(group)))
        elif len(group) > 1 and together in known:
            found.append(known[together])
    return found


def _seeds_of(tasks: Sequence[Task]) -> List[List[Task]]:
    """The tasks that measure a fold, those of one row in one fold together."""
    groups: Dict[Tuple[int, str, str], List[Task]] = {}
    for task in tasks:
        if task.name.endswith(MEASURING):
            place = task.settings["fold"], task.part, task.row
            groups.setdefault(place, []).append(task)
    return list(groups.values())


def read_measured(path: Path) -> List[Measured]:
    """
    # Returns

    `List[Measured]`
        All numbers of a `folds.json`.

    # Raises

    ConfigurationError
        If it can't be read, or is something else.
    """
    return read_numbers(path, itemgetter("measured"), Measured, "cross-validation")


def support_vector_machines(folds: Sequence[Fold]) -> List[Measured]:
    """What TF-IDF and a linear support vector machine reach; they learn from `choosing` too."""
    found = []
    for part in BEST:
        for number, fold in enumerate(folds, start=1):
            rows = [*fold.train, *fold.choosing]
            answers = bag_of_words(rows, fold.measured, part == "titles")
            found.append(Measured(part, SVM, number, 0, answers.accuracy))
    return found


def by_fold(found: Sequence[Measured]) -> Dict[Tuple[str, str], Dict[int, float]]:
    """The accuracy of each row in each fold, over its seeds; rows are told by part and name."""
    accuracies: Dict[Tuple[str, str], Dict[int, List[float]]] = {}
    for one in found:
        folds = accuracies.setdefault((one.part, one.row), {})
        folds.setdefault(one.fold, []).append(one.accuracy)
    return {
        row: {fold: mean(numbers) for fold, numbers in sorted(folds.items())}
        for row, folds in accuracies.items()
    }


def standard_error(numbers: Sequence[float]) -> float:
    """The standard error of the mean of several numbers; NaN for a single one."""
    return stdev(numbers) / len(numbers) ** 0.5 if len(numbers) > 1 else float("nan")


def markdown(found: Sequence[Measured], num_texts: int) -> str:
    """
    # Parameters

    found : `Sequence[Measured]`
        At least one.
    num_texts : `int`
        How many texts all folds have.

    # Returns

    `str`
        A table for each part.
    """
    rows = by_fold(found)
    blocks = []
    for part in dict.fromkeys(part for part, _ in rows):
        lines = [
            f"| {part} | folds | seeds | accuracy | over no biLM | of what chose the epoch |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        of_part = {row: folds for (its, row), folds in rows.items() if its == part}
        for row, folds in sorted(of_part.items(), key=lambda one: -mean(one[1].values())):
            mine = [one for one in found if (one.part, one.row) == (part, row)]
            num_seeds = max(len({one.seed for one in mine}), *(one.num_together for one in mine))
            chose = [one.choosing for one in mine if one.choosing is not None]
            # Several together are compared with several together.
            reference = WITHOUT + TOGETHER if row.endswith(TOGETHER) else WITHOUT
            without = of_part.get(reference, {})
            differences = [folds[fold] - without[fold] for fold in folds if fold in without]
            over = _shown(differences, "+.2f") if differences and row != reference else ""
            cells = [row, str(len(folds)), str(num_seeds)]
            cells += [f"{_shown(list(folds.values()), '.2f')} %", over]
            cells.append(f"{mean(chose):.2%}" if chose else "")
            lines.append(f"| {' | '.join(cells)} |")
        blocks.append("\n".join(lines))
    share = mean(accuracy for folds in rows.values() for accuracy in folds.values())
    texts = 100 * (share * (1 - share) / num_texts) ** 0.5
    note = NOTE.format(texts=texts)
    if any(one.num_together > 1 for one in found):
        note += NOTE_ON_SEVERAL
    return "\n\n".join([*blocks, note]) + "\n"


def _shown(shares: Sequence[float], form: str) -> str:
    """The mean of shares and its standard error, in percent."""
    shown = format(100 * mean(shares), form)
    return f"{shown} ± {100 * standard_error(shares):.2f}" if len(shares) > 1 else shown


def _parser() -> argparse.ArgumentParser:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help="AG News files, taken together")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument("--folds", type=int, default=5, help="how many folds (default: 5)")
    parser.add_argument(
        "--similar",
        type=float,
        default=SIMILAR,
        help="the cosine of TF-IDF vectors above which two texts stay in one fold (default: "
        "%(default)s); with 1 none do, and classifiers seem better than they are",
    )
    parser.add_argument(
        "--seeds", type=int, default=1, help="trainings of each row in each fold (default: 1)"
    )
    add_jobs(parser)
    parser.add_argument(
        "--overrides",
        type=json_object,
        default={},
        metavar="JSON",
        help="for every training, of biLMs too: settings that are tried",
    )
    parser.add_argument(
        "--results",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a folds.json from another folder or machine: what it has is not trained again",
    )
    parser.add_argument(
        "--only",
        type=pattern,
        default=DEFAULT,
        metavar="REGEX",
        help="the rows in whose part and name it is found, such as '^titles: ' (default: all but "
        "biLMs that are trained on)",
    )
    return parser


def main() -> None:
    """Trains and measures what has not been measured yet, and writes the tables."""
    parser = _parser()
    args = parser.parse_args()
    if args.folds < 2 or args.seeds < 1 or args.jobs < 1:
        parser.error("expected two `--folds` at least, and one of `--seeds` and of `--jobs`")
    try:
        rows = read_rows(args.files)
        groups = same_news(rows, args.similar)
        folds = drawn_folds(rows, groups, args.folds)
        known = {one.settings: one for path in args.results for one in read_measured(path)}
        with study_in(args.folder, parser):
            planned: List[Task] = []
            for number, fold in enumerate(folds, start=1):
                folder = args.folder.resolve() / f"fold_{number}"
                write_fold(fold, folder)
                planned += fold_tasks(folder, number, range(args.seeds), args.overrides)
            check_settings(planned, parser)
            twins = sum(numpy.bincount(groups)[groups] > 1)
            print(f"{len(rows):,} texts, of which {twins:,} tell news that others tell too")
            tasks = _undone_elsewhere(chosen_tasks(planned, args.only), known)
            tell_time(tasks, _expected(tasks, len(folds[0].train)), args.jobs)
            undone = run_all(tasks, args.jobs)
            found = measured_in(planned, folds, known) + support_vector_machines(folds)
            table = markdown(found, len(rows))
            numbers = {"texts": len(rows), "measured": [asdict(one) for one in found]}
            texts = {
                "folds.md": table,
                NAMES["cross-validation"]: json.dumps(numbers, indent=2) + "\n",
            }
            for name, text in texts.items():
                with atomic_write(args.folder / name) as part:
                    part.write_text(text, encoding="utf-8")
    except ConfigurationError as error:
        parser.error(error.message)
    print(table)
    if undone.failed:
        sys.exit(failures(undone, len(tasks), args.folder))


def _undone_elsewhere(tasks: Sequence[Task], known: Mapping[str, Measured]) -> List[Task]:
    """What measures a row that is not known, and what that needs."""
    wanted: Set[str] = set()
    chosen = []
    for task in reversed(tasks):
        is_measuring = task.name.endswith(MEASURING)
        if task.name in wanted or (is_measuring and task.fingerprint() not in known):
            chosen.append(task)
            wanted.update(task.needs)
    return chosen[::-1]


def _expected(tasks: Sequence[Task], num_texts: int) -> Dict[str, float]:
    """What each task will take on a core, in seconds, by its name."""
    seconds = {}
    for task in tasks:
        # They are known by their names without the fold's.
        plain = task._replace(name=task.name.split(", ", 1)[1])
        seconds[task.name] = expected_seconds([plain], num_texts)[plain.name]
        if task.name.endswith(MEASURING) and not task.is_done:
            seconds[task.name] = SECONDS_OF_MEASURING
    return seconds


if __name__ == "__main__":
    main()
