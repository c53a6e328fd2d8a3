"""The results as a table."""

from statistics import mean
from typing import List, Sequence

from results import Row
from training import SCORES

from elmo_scratch.report.comparison import may_be_best

PARTS = {
    "mixes": "One classifier over different vectors, of descriptions",
    "descriptions": "The best classifiers, of descriptions",
    "titles": "The best classifiers, of titles and descriptions",
}
"""The parts of the study and their headings."""

NOTE = (
    "≈: may be the best as well as the first row (multiple comparisons with the best, Hsu 1984, at "
    "5 % for all rows of a table together; a row of one seed counts with as much noise as the "
    "rest). What the choice of the epoch and of the texts on dev does is not in it: accuracies are "
    "those of the best epoch, where there are epochs."
)


def markdown(rows: Sequence[Row]) -> str:
    """
    # Returns

    `str`
        A table for each part that has a row, under its heading, and what the best row confuses.
    """
    by_part = {part: [row for row in rows if row.part == part] for part in PARTS}
    tables = [
        f"### {PARTS[part]}\n\n{_table(members)}\n\n{_confusion(members)}"
        for part, members in by_part.items()
        if members
    ]
    return "\n\n".join([*tables, NOTE]) + "\n"


def _table(rows: Sequence[Row]) -> str:
    """
    The best row first: mean and standard deviation over the seeds. Rows that may be the best too
    are marked.
    """
    ordered = _ordered(rows)
    is_open = may_be_best([row.scores("accuracy") for row in ordered])
    lines = [
        "| vectors, mix | seeds | accuracy | after the last epoch | precision | recall | F1 "
        "| layers' shares | time |",
        "|---|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for place, row in enumerate(ordered):
        accuracy = f"{row.mean('accuracy'):.2%}"
        macro = [f"{row.mean(score):.3f}" for score in SCORES[1:]]
        if len(row.trainings) > 1:
            accuracy += f" ± {100 * row.deviation('accuracy'):.2f}"
            deviations = [row.deviation(score) for score in SCORES[1:]]
            macro = [f"{number} ± {one:.3f}" for number, one in zip(macro, deviations)]
        if place and is_open[place]:
            accuracy += " ≈"
        ends = [one.last_accuracy for one in row.trainings if one.last_accuracy is not None]
        last = f"{mean(ends):.2%}" if ends else ""
        mixed = [one.shares for one in row.trainings if one.shares]
        shares = ", ".join(f"{mean(layer):.2f}" for layer in zip(*mixed))
        cells = [row.name, str(len(row.trainings)), accuracy, last, *macro, shares]
        seconds = mean(training.seconds for training in row.trainings)
        lines.append(f"| {' | '.join(cells)} | {seconds:.0f} s |")
    return "\n".join(lines)


def _ordered(rows: Sequence[Row]) -> List[Row]:
    """The best first."""
    return sorted(rows, key=lambda row: -row.mean("accuracy"))


def _confusion(rows: Sequence[Row]) -> str:
    """What the best row takes for what, over all its seeds."""
    best = _ordered(rows)[0]
    classes = best.trainings[0].classes
    lines = [
        f"| {best.name}: true class | {' | '.join(f'as {name}' for name in classes)} |",
        "|---|" + "---:|" * len(classes),
    ]
    for name, counts in zip(classes, best.confusion()):
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)
