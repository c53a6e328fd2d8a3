"""
How many labels a classifier of AG News needs, over vectors that no label was needed for:

    python examples/ag_news_study/learning_curve.py train.csv dev.csv --folder runs/curve

holds back a fifth of the texts of both files, so that no news is told on both sides, and measures
on it. A tenth of the others chooses the biLM's epoch. The rest is read, without labels, by word
vectors and biLMs. Then the study's classifier is trained on 100, 500, 1,000 and 5,000 labelled
texts of this rest and on all of it, over each of these vectors, and so are bags of words: TF-IDF
with a support vector machine, and fastText where it is installed. Settings are the same at each
size, and each training is measured once, at its end. It writes a table (learning_curve.md), a
picture (learning_curve.svg) and all numbers (learning_curve.json).

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
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence

from allennlp.common import FromParams
from allennlp.common.checks import ConfigurationError
from bag_of_words import bag_of_words
from command_line import failures, json_object, pattern
from cross_validation import read_rows
from expected import NUM_TEXTS, PREPARATIONS, SECONDS_OF_BILM, tell_time
from folds import Fold, drawn_folds, same_news
from part import write_rows
from plan import METHODS, STILL, Plan, chosen_tasks
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

ALL_WORDS = 10**6
"""More than a file of word vectors has."""

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
            for row, (kind, need, _) in ROWS.items():
                settings = _whole_training(size, overrides)
                if need in METHODS:
                    made, mix = plan.vectors(need), ""
                    # As a biLM knows all its words, and not those of the labelled texts alone.
                    settings["vocabulary"] = {
                        "pretrained_files": {"tokens": str(made)},
                        "min_pretrained_embeddings": {"tokens": ALL_WORDS},
                    }
                else:
                    made, mix = plan.archive(need), "trainable"
                learning.add_classifier(
                    row, kind, made, need, mix, seed, f"{size} labels", settings
                )
    return plan.tasks


def _whole_training(size: int, overrides: Mapping[str, object]) -> Dict[str, object]:
    """
    Settings of a training on so many texts that is measured once, at its end: AllenNLP measures
    after what it calls an epoch, which is made the whole training.
    """
    settings: Dict[str, object] = {
        "trainer.num_epochs": 1,
        # By default it is that of the training: each text would be measured several times.
        "validation_data_loader": {
            "batch_sampler": {
                "type": "bucket",
                "batch_size": BATCH_SIZE,
                "sorting_keys": ["text"],
            }
        },
    }
    steps = "data_loader.batches_per_epoch"
    if steps not in overrides:
        settings[steps] = num_steps(size)
    return settings


def points_of(tasks: Sequence[Task], known: Mapping[str, Point]) -> List[Point]:
    """What the trainings have reached so far, done here or `known` by their fingerprints."""
    found = []
    for task in tasks:
        settings = task.fingerprint()
        if not task.row or not (task.is_done or settings in known):
            continue
        accuracy = (
            training_of(task).scores["accuracy"] if task.is_done else known[settings].accuracy
        )
        seed = task.settings["config"]["random_seed"]
        found.append(Point(task.row, labels_of(task), seed, accuracy, settings))
    return found


def labels_of(task: Task) -> int:
    """How many labelled texts a training has."""
    return int(task.part.split()[0])


def by_svm(train: Sequence[AgNewsRow], measured: Sequence[AgNewsRow]) -> float:
    """The accuracy of a linear support vector machine over TF-IDF."""
    return bag_of_words(train, measured, use_title=False).accuracy


def by_fast_text(train: Sequence[AgNewsRow], measured: Sequence[AgNewsRow]) -> float:
    """The accuracy of fastText (Joulin et al. 2017), words in lower case."""
    import fasttext

    def read(row: AgNewsRow) -> str:
        text = ag_news_text(row.description, row.title, use_title=False)
        return " ".join(re.findall(r"\w+|[^\w\s]", text.lower()))

    def label(row: AgNewsRow) -> str:
        return f"__label__{row.label.replace('/', '')}"

    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "train.txt"
        lines = [f"{label(row)} {read(row)}\n" for row in train]
        file.write_text("".join(lines), encoding="utf-8")
        model = fasttext.train_supervised(str(file), verbose=0, **SETTINGS_OF_FAST_TEXT)
    # `model.predict` fails beside NumPy 2 in most of its releases; this is what it calls.
    found = [model.f.predict(f"{read(row)}\n", 1, 0.0, "strict") for row in measured]
    return mean(best[0][1] == label(row) for best, row in zip(found, measured))


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
    """
    The accuracies of the seeds by row and number of labels. The row that is best on average, over
    the numbers of labels that all rows have, comes first.
    """
    rows: Dict[str, Dict[int, List[float]]] = {}
    for point in sorted(points, key=lambda point: (point.labels, point.seed)):
        rows.setdefault(point.row, {}).setdefault(point.labels, []).append(point.accuracy)
    shared = set.intersection(*map(set, rows.values()))

    def on_average(row: str) -> float:
        return mean(mean(rows[row][labels]) for labels in shared or rows[row])

    return {row: rows[row] for row in sorted(rows, key=on_average, reverse=True)}


NOTE = (
    "Accuracy in percent on {measured:,} texts that were held back: the mean over the seeds ± "
    "their standard deviation. Each seed draws the weights that a training starts from and, but "
    "for the last column, the labelled texts; bags of words have one training on all texts. "
    "Vectors and biLMs have read all texts of the last column, without labels; there is one of "
    "each. Settings were chosen before, on the texts of dev, some of which are among those that "
    "were held back. The standard error that comes from the number of texts alone is {least:.2f} "
    "to {most:.2f} points, the less the higher the accuracy, and somewhat more since news is told "
    "twice. All rows are measured on the same texts."
)


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
    shares = [mean(numbers) for by_size in rows.values() for numbers in by_size.values()]
    errors = [100 * (share * (1 - share) / num_measured) ** 0.5 for share in shares]
    note = NOTE.format(measured=num_measured, least=min(errors), most=max(errors))
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
        type=json_object,
        default={},
        metavar="JSON",
        help="for every training, of biLMs too, but not for what makes the curve what it is: "
        "'{\"data_loader.batches_per_epoch\": 2}' tries it out",
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
        type=pattern,
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
    if args.seeds < 1 or args.jobs < 1:
        parser.error("expected at least one of `--seeds` and of `--jobs`")
    try:
        check_matplotlib()
        known = {one.settings: one for path in args.results for one in read_points(path)}
        rows = read_rows(args.files)
        fold = drawn_folds(rows, same_news(rows), FOLDS)[0]
        num_classes, most = len({row.label for row in fold.train}), len(fold.train)
        if not all(num_classes <= size < most for size in args.sizes):
            parser.error(f"expected `--sizes` from {num_classes} to {most - 1}, got {args.sizes}")
        texts = {
            size: [labelled(fold.train, size, seed) for seed in range(args.seeds)]
            for size in [*sorted(set(args.sizes)), most]
        }
        with study_in(args.folder, parser):
            folder = args.folder.resolve()
            draws = write_texts(fold, texts, folder)
            planned = curve_tasks(folder, draws, args.overrides)
            _check(planned, args, known, parser)
            unknown = [task for task in planned if task.fingerprint() not in known]
            tasks = chosen_tasks(unknown, args.only)
            print(f"{most:,} texts to learn from, {len(fold.measured):,} to measure on")
            if not args.overrides:
                tell_time(tasks, _expected(tasks, most), args.jobs)
            bags = list(points_of_bags(texts, fold.measured))
            undone = run_all(tasks, args.jobs)
            points = [*points_of(planned, known), *bags]
            write_results(points, len(fold.measured), args.folder)
    except ConfigurationError as error:
        parser.error(error.message)
    print(markdown(points, len(fold.measured)))
    if undone.failed:
        sys.exit(failures(undone, len(tasks), args.folder))


def write_texts(
    fold: Fold, texts: Mapping[int, Sequence[List[AgNewsRow]]], folder: Path
) -> Dict[int, Dict[int, Path]]:
    """
    Writes the files of the curve, but for those that are there as they would be. Returns those of
    labelled texts by their number and their seed; all of them are train.csv, whatever the seed.
    """
    places = {folder / f"{name}.csv": part for name, part in fold._asdict().items()}
    draws: Dict[int, Dict[int, Path]] = {}
    for size, by_seed in texts.items():
        for seed, part in enumerate(by_seed):
            is_whole = size == len(fold.train)
            path = folder / ("train.csv" if is_whole else f"labelled_{size}_{seed}.csv")
            draws.setdefault(size, {})[seed] = path
            places[path] = part
    for path, rows in places.items():
        if not path.exists() or list(ag_news_rows(path)) != rows:
            write_rows(rows, path)
    return draws


def points_of_bags(
    texts: Mapping[int, Sequence[List[AgNewsRow]]], measured: Sequence[AgNewsRow]
) -> Iterator[Point]:
    """What bags of words reach, which takes a moment."""
    for row, measure in BAGS.items():
        if row == FAST_TEXT and find_spec("fasttext") is None:
            print("without fastText, which is not installed: pip install fasttext-numpy2-wheel")
            continue
        for size, by_seed in texts.items():
            # There is one draw of all texts.
            for seed, part in enumerate(by_seed[:1] if size == max(texts) else by_seed):
                yield Point(row, size, seed, measure(part, measured))


def write_results(points: Sequence[Point], num_measured: int, folder: Path) -> None:
    """Writes the table, all numbers and the picture."""
    numbers = {"measured_texts": num_measured, "points": [asdict(one) for one in points]}
    file = folder / NUMBERS
    texts = {
        file: json.dumps(numbers, indent=1) + "\n",
        file.with_suffix(".md"): markdown(points, num_measured),
    }
    for path, text in texts.items():
        with atomic_write(path) as part:
            part.write_text(text, encoding="utf-8")
    draw(points, file.with_suffix(".svg"))


def _check(
    planned: Sequence[Task],
    args: argparse.Namespace,
    known: Mapping[str, Point],
    parser: argparse.ArgumentParser,
) -> None:
    """Ends the program if `--only`, `--results` or the folder don't go with what is planned."""
    check_settings(planned, parser)
    names = {f"{task.part}: {task.row}" for task in planned if task.row}
    if not any(re.search(args.only, name) for name in names):
        listed = "\n".join(sorted(names))
        parser.error(f"`--only {args.only}` is found in no training. They are:\n{listed}")
    # Bags of words have no fingerprints.
    if strangers := known.keys() - {task.fingerprint() for task in planned} - {""}:
        parser.error(
            f"{len(strangers)} of the trainings in `--results` have other settings, texts or "
            "overrides than any of this curve"
        )


def _expected(tasks: Sequence[Task], num_texts: int) -> Dict[str, float]:
    """What each task will take on a core, in seconds, by its name."""
    seconds = {}
    for task in tasks:
        if task.is_done:
            seconds[task.name] = 0.0
        elif task.row:
            steps = num_steps(labels_of(task))
            # Starting, and measuring at the end, take about half a minute.
            seconds[task.name] = 30.0 + steps * ROWS[task.row].seconds_a_step
        else:
            known = PREPARATIONS.get(task.name, SECONDS_OF_BILM)
            seconds[task.name] = known * num_texts / NUM_TEXTS
    return seconds


if __name__ == "__main__":
    main()
