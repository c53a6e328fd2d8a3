"""
How many labels a classifier of AG News needs, over vectors that no label was needed for:

    python examples/ag_news_study/learning_curve.py train.csv dev.csv --folder runs/curve

holds back a fifth of the texts of both files, so that no news is told on both sides, and measures
on it. Word vectors and biLMs read all other texts, without labels. Then the study's classifier is
trained on 100, 500, 1,000 and 5,000 labelled texts and on all of them, over each of these vectors,
and so are bags of words. Settings are the same at each size, and nothing is chosen by what is
measured. It writes a table (learning_curve.md), a picture (learning_curve.svg) and all numbers
(learning_curve.json).

It says first how long that takes: some hours of two cores, most of it for the biLM that is trained
on; `--only` takes some of the rows. Started again after it was stopped, it goes on where it was.
"""

import argparse
import json
import math
import random
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from statistics import mean, stdev
from typing import Callable, Dict, List, Mapping, NamedTuple, Sequence, Set

from allennlp.common import FromParams
from allennlp.common.checks import ConfigurationError
from bag_of_words import bag_of_words
from cross_validation import read_rows
from expected import PREPARATIONS, SECONDS_OF_BILM, tell_time
from folds import drawn_folds, same_news
from part import write_rows
from plan import METHODS, STILL, Plan
from results_file import NAMES, read_numbers
from training import training_of

from elmo_scratch.data.readers import AgNewsRow, ag_news_rows, ag_news_text
from elmo_scratch.files.atomic import atomic_write
from elmo_scratch.report import check_matplotlib
from elmo_scratch.report.charts import MARKERS, SERIES, drawing
from elmo_scratch.search.tasks import Task, add_jobs, check_settings, run_all, study_in

SIZES = (100, 500, 1000, 5000)
"""How many labelled texts there are, beside all."""

FOLDS = 5
"""A fifth of the texts is measured."""

BATCH_SIZE, PASSES, MIN_STEPS = 32, 4, 300
"""
Each size is read as often as in the study, or for so many steps: of a hundred texts four passes
would be thirteen steps.
"""

SVM, FAST_TEXT = "TF-IDF, linear SVM", "fastText"
"""The rows that read bags of words."""

SETTINGS_OF_FAST_TEXT = {"lr": 1.0, "epoch": 25, "wordNgrams": 2, "thread": 1}
"""Those that its own tutorial on classification arrives at; one thread repeats its numbers."""

NUMBERS = NAMES["learning curve"]
"""The file of all numbers, beside those of the table and the picture."""


class Vectors(NamedTuple):
    """
    What the classifier reads in a row.

    # Parameters

    kind : `str`
        `STUDY_VECTORS` of study.jsonnet.
    need : `str`
        The biLM or the word vectors.
    seconds_a_step : `float`
        What a step took about, on the core that `tell_time` names.
    """

    kind: str
    need: str
    seconds_a_step: float


ROWS = {
    "ELMo, fine-tuned": Vectors("fine_tuned", "words from word2vec", 0.85),
    "ELMo, frozen": Vectors("words", "words from word2vec", 0.1),
    "word2vec": Vectors("static", "word2vec", 0.05),
    "PPMI, SVD": Vectors("static", "svd", 0.04),
    "untrained biLM": Vectors("words", "untrained words", 0.12),
}
"""The rows that are trained, by their names."""


@dataclass(frozen=True)
class Point(FromParams):
    """
    One training.

    # Parameters

    row : `str`
        What it reads.
    labels, seed : `int`
        How many labelled texts there were; the number of their draw and of the training's.
    accuracy : `float`
        On the texts that were held back.
    settings : `str`, optional (default = `""`)
        `Task.fingerprint` of the training; empty where it takes a moment.
    """

    row: str
    labels: int
    seed: int
    accuracy: float
    settings: str = ""


def labelled(rows: Sequence[AgNewsRow], size: int, seed: int) -> List[AgNewsRow]:
    """
    # Parameters

    rows : `Sequence[AgNewsRow]`
        All there are.
    size : `int`
        How many are drawn.
    seed : `int`
        Of the draw. A smaller draw of the same seed is a part of a larger one.

    # Returns

    `List[AgNewsRow]`
        As many of each class, but for the remainder, as long as a class has enough; in the order of
        `rows`.
    """
    drawn = random.Random(seed)
    by_class: Dict[str, List[int]] = {}
    for place, row in enumerate(rows):
        by_class.setdefault(row.label, []).append(place)
    for places in by_class.values():
        drawn.shuffle(places)
    most = max(map(len, by_class.values()))
    # One of each class after the other.
    turns = [
        by_class[label][number]
        for number in range(most)
        for label in sorted(by_class)
        if number < len(by_class[label])
    ]
    return [rows[place] for place in sorted(turns[:size])]


def num_steps(size: int) -> int:
    """The steps of a training on so many texts."""
    return max(MIN_STEPS, math.ceil(PASSES * size / BATCH_SIZE))


def curve_tasks(
    folder: Path, draws: Mapping[int, Mapping[int, Path]], overrides: Dict[str, object]
) -> List[Task]:
    """
    # Parameters

    folder : `Path`
        With train.csv, choosing.csv and measured.csv.
    draws : `Mapping[int, Mapping[int, Path]]`
        The labelled texts, by their number and their seed.
    overrides : `Dict[str, object]`
        For each training.

    # Returns

    `List[Task]`
        Word vectors and biLMs of train.csv, and the trainings of all rows, each part of so many
        labels; a training is measured once, at its end.
    """
    plan = Plan(folder / "train.csv", folder / "choosing.csv", folder, overrides)
    for method in METHODS:
        plan.add_vectors(method, method, {"max_tokens": 100})
    plan.add_bilm("words from word2vec", "ag_news", {}, ["word2vec"])
    plan.add_bilm("untrained words", "ag_news", STILL)
    for size, by_seed in draws.items():
        for seed, file in by_seed.items():
            learning = plan.reading(file, folder / "measured.csv")
            # AllenNLP measures after what it calls an epoch: here it is the whole training.
            whole = {"trainer.num_epochs": 1, "data_loader.batches_per_epoch": num_steps(size)}
            settings = {key: value for key, value in whole.items() if key not in overrides}
            for row, (kind, need, _) in ROWS.items():
                made = plan.vectors(need) if need in METHODS else plan.archive(need)
                mix = "" if need in METHODS else "trainable"
                learning.add_classifier(
                    row, kind, made, need, mix, seed, f"{size} labels", settings
                )
    return plan.tasks


def points_of(tasks: Sequence[Task], known: Mapping[str, Point]) -> List[Point]:
    """What the trainings have reached so far, done here or `known` by their fingerprints."""
    found = []
    for task in tasks:
        if not task.row:
            continue
        settings = task.fingerprint()
        if task.is_done:
            training = training_of(task)
            labels = int(task.part.split()[0])
            accuracy = training.scores["accuracy"]
            found.append(Point(task.row, labels, training.seed, accuracy, settings))
        elif settings in known:
            found.append(known[settings])
    return found


def by_svm(train: Sequence[AgNewsRow], measured: Sequence[AgNewsRow]) -> float:
    """The accuracy of a linear support vector machine over TF-IDF."""
    answers = bag_of_words(train, measured, use_title=False)
    return mean(map(str.__eq__, answers.labels, answers.predicted))


def by_fast_text(train: Sequence[AgNewsRow], measured: Sequence[AgNewsRow]) -> float:
    """The accuracy of fastText (Joulin et al. 2017), words in lower case."""
    import fasttext

    def read(row: AgNewsRow) -> str:
        text = ag_news_text(row.description, row.title, use_title=False)
        return " ".join(re.findall(r"\w+|[^\w\s]", text.lower()))

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "train.txt"
        lines = [f"__label__{row.label.replace('/', '')} {read(row)}\n" for row in train]
        file.write_text("".join(lines), encoding="utf-8")
        model = fasttext.train_supervised(str(file), verbose=0, **SETTINGS_OF_FAST_TEXT)
    # `predict` of a list is broken beside NumPy 2 in most of its releases.
    right = sum(
        model.f.predict(f"{read(row)}\n", 1, 0.0, "strict")[0][1]
        == f"__label__{row.label.replace('/', '')}"
        for row in measured
    )
    return right / len(measured)


BAGS: Dict[str, Callable[[Sequence[AgNewsRow], Sequence[AgNewsRow]], float]] = {
    SVM: by_svm,
    FAST_TEXT: by_fast_text,
}
"""The rows that need no training of AllenNLP's."""


def read_points(path: Path) -> List[Point]:
    """
    # Returns

    `List[Point]`
        All numbers of a `learning_curve.json`.

    # Raises

    ConfigurationError
        If it can't be read, or is something else.
    """
    return read_numbers(path, itemgetter("points"), Point, "learning curve")


def accuracies(points: Sequence[Point]) -> Dict[str, Dict[int, List[float]]]:
    """The accuracies of the seeds by row and number of labels; the best row first."""
    rows: Dict[str, Dict[int, List[float]]] = {}
    for point in sorted(points, key=lambda point: (point.labels, point.seed)):
        rows.setdefault(point.row, {}).setdefault(point.labels, []).append(point.accuracy)

    def overall(row: str) -> float:
        return mean(mean(numbers) for numbers in rows[row].values())

    return {row: rows[row] for row in sorted(rows, key=overall, reverse=True)}


def markdown(points: Sequence[Point], num_measured: int) -> str:
    """A table of at least one point, for `num_measured` texts that were held back."""
    rows = accuracies(points)
    sizes = sorted({point.labels for point in points})
    lines = [
        f"| labelled texts | {' | '.join(f'{size:,}' for size in sizes)} |",
        f"|---|{'---:|' * len(sizes)}",
    ]
    for row, numbers in rows.items():
        cells = [_shown(numbers[size]) if size in numbers else "" for size in sizes]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    share = mean(mean(numbers) for by_size in rows.values() for numbers in by_size.values())
    noise = 100 * (share * (1 - share) / num_measured) ** 0.5
    note = (
        f"Accuracy in percent on {num_measured:,} texts that were held back: the mean over the "
        "seeds ± their standard deviation. Each seed draws its labelled texts, all but the last "
        "column's, and the weights that a training starts from. Vectors and biLMs have read all "
        "texts that were not held back, without labels; there is one of each. The standard error "
        f"that comes from the number of texts alone is {noise:.2f} points; it is the same texts "
        "for all rows."
    )
    return "\n".join([*lines, "", note]) + "\n"


def _shown(numbers: Sequence[float]) -> str:
    """The mean of shares and their standard deviation, in percent."""
    shown = f"{100 * mean(numbers):.2f}"
    return f"{shown} ± {100 * stdev(numbers):.2f}" if len(numbers) > 1 else shown


def draw(points: Sequence[Point], path: Path) -> None:
    """Writes a picture of the means, with bars of one standard deviation, as SVG."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    sizes = sorted({point.labels for point in points})
    with drawing(9.0):
        figure = Figure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for place, (row, by_size) in enumerate(accuracies(points).items()):
            axes.errorbar(
                list(by_size),
                [100 * mean(numbers) for numbers in by_size.values()],
                [100 * stdev(one) if len(one) > 1 else 0.0 for one in by_size.values()],
                label=row,
                color=SERIES[place % len(SERIES)],
                marker=MARKERS[place % len(MARKERS)],
                linestyle="-" if place < len(SERIES) else "--",
                capsize=2.0,
            )
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(FixedLocator(sizes))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlabel("labelled texts")
        axes.set_ylabel("accuracy in percent, on texts that were held back")
        axes.legend(loc="lower right")
        with atomic_write(path) as part:
            figure.savefig(part, format="svg", metadata={"Date": None})


def _parser() -> argparse.ArgumentParser:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", help="AG News files, taken together")
    parser.add_argument("--folder", type=Path, required=True, help="where everything is written")
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=list(SIZES),
        metavar="N",
        help="labelled texts, beside all (default: %(default)s)",
    )
    parser.add_argument("--seeds", type=int, default=5, help="draws of each size (default: 5)")
    add_jobs(parser)
    parser.add_argument(
        "--overrides",
        type=json.loads,
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
        help=f"a {NUMBERS} from another folder or machine: what it has is not trained again",
    )
    parser.add_argument(
        "--only",
        type=re.compile,
        default="",
        metavar="REGEX",
        help="the trainings in whose labels and row it is found, such as '^100 labels' or "
        "': ELMo, frozen' (default: all)",
    )
    return parser


def main() -> None:
    """Trains what has not been trained yet, and writes table, picture and numbers."""
    parser = _parser()
    args = parser.parse_args()
    if args.seeds < 1 or args.jobs < 1 or min(args.sizes) < 1:
        parser.error("expected one of `--seeds`, of `--jobs` and of each of `--sizes` at least")
    try:
        check_matplotlib()
        rows = read_rows(args.files)
        fold = drawn_folds(rows, same_news(rows), FOLDS)[0]
        known = {one.settings: one for path in args.results for one in read_points(path)}
        with study_in(args.folder, parser):
            folder = args.folder.resolve()
            sizes = [size for size in sorted(set(args.sizes)) if size < len(fold.train)]
            texts = {
                size: {seed: labelled(fold.train, size, seed) for seed in range(args.seeds)}
                for size in [*sizes, len(fold.train)]
            }
            places = {folder / f"{name}.csv": part for name, part in fold._asdict().items()}
            draws: Dict[int, Dict[int, Path]] = {}
            for size, by_seed in texts.items():
                for seed, part in by_seed.items():
                    is_whole = size == len(fold.train)
                    name = "train.csv" if is_whole else f"labelled_{size}_{seed}.csv"
                    draws.setdefault(size, {})[seed] = folder / name
                    places[folder / name] = part
            for path, part in places.items():
                if not path.exists() or list(ag_news_rows(path)) != part:
                    write_rows(part, path)
            planned = curve_tasks(folder, draws, args.overrides)
            check_settings(planned, parser)
            tasks = _wanted(planned, args.only, known)
            print(f"{len(fold.train):,} texts to learn from, {len(fold.measured):,} to measure on")
            tell_time(tasks, _expected(tasks), args.jobs)
            undone = run_all(tasks, args.jobs)
            points = points_of(planned, known)
            for row, measure in BAGS.items():
                if row == FAST_TEXT and find_spec("fasttext") is None:
                    print("without fastText, which is not installed: pip install fasttext-wheel")
                    continue
                for size, by_seed in texts.items():
                    # Of all texts there is one draw.
                    for seed in list(by_seed)[: 1 if size == len(fold.train) else None]:
                        accuracy = measure(by_seed[seed], fold.measured)
                        points.append(Point(row, size, seed, accuracy))
            table = markdown(points, len(fold.measured))
            numbers = {
                "measured_texts": len(fold.measured),
                "points": [asdict(one) for one in points],
            }
            table_file, picture = (
                (args.folder / NUMBERS).with_suffix(kind) for kind in (".md", ".svg")
            )
            written = {
                table_file: table,
                args.folder / NUMBERS: json.dumps(numbers, indent=1) + "\n",
            }
            for path, text in written.items():
                with atomic_write(path) as file:
                    file.write_text(text, encoding="utf-8")
            draw(points, picture)
    except ConfigurationError as error:
        parser.error(error.message)
    print(table)
    if undone.failed:
        sys.exit(
            f"{len(undone.failed)} of {len(tasks)} failed: {', '.join(undone.failed)}. Their logs "
            f"are in {args.folder}; the same command tries them again"
        )


def _wanted(planned: Sequence[Task], only: str, known: Mapping[str, Point]) -> List[Task]:
    """The trainings that are asked for and not known, and what they need."""
    needed: Set[str] = set()
    chosen = []
    for task in reversed(planned):
        is_row = task.row and re.search(only, f"{task.part}: {task.row}")
        if task.name in needed or (is_row and task.fingerprint() not in known):
            chosen.append(task)
            needed.update(task.needs)
    return chosen[::-1]


def _expected(tasks: Sequence[Task]) -> Dict[str, float]:
    """What each task will take on a core, in seconds, by its name."""
    seconds = {}
    for task in tasks:
        if task.is_done:
            seconds[task.name] = 0.0
        elif task.row:
            steps = num_steps(int(task.part.split()[0]))
            # Starting, and measuring at the end, take about half a minute.
            seconds[task.name] = 30.0 + steps * ROWS[task.row].seconds_a_step
        else:
            seconds[task.name] = PREPARATIONS.get(task.name, SECONDS_OF_BILM)
    return seconds


if __name__ == "__main__":
    main()
