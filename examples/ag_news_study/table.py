"""The results as a table and as JSON."""

import json
import math
from pathlib import Path
from statistics import mean
from typing import Any, Dict, List, Sequence

from results import SCORES, Row
from scipy import stats
from scipy.stats import ttest_1samp, ttest_ind

from elmo_scratch.whole_file import whole_file

CERTAIN = 0.05
"""A difference that chance alone makes less often than this is called one."""

PARTS = {
    "mixes": "One classifier over different vectors, of descriptions",
    "descriptions": "The best classifiers, of descriptions",
    "titles": "The best classifiers, of titles and descriptions",
}
"""The parts of the study and their headings."""

NOTE = (
    "≈: within noise of the best row (a t-test over the seeds, Welch's where both rows have "
    "several, p of 0.05 or more; not told where the best has one). A single seed is taken to have "
    "as much noise as those of the best."
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
    The best row first: mean and standard deviation over the seeds. Rows whose accuracies can't be
    told from those of the best are marked.
    """
    ordered = _ordered(rows)
    lines = [
        "| vectors, mix | seeds | accuracy | after the last epoch | precision | recall | F1 "
        "| layers' shares | time |",
        "|---|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for row in ordered:
        accuracy = f"{row.mean('accuracy'):.2%}"
        macro = [f"{row.mean(score):.3f}" for score in SCORES[1:]]
        if len(row.seconds) > 1:
            accuracy += f" ± {100 * row.deviation('accuracy'):.2f}"
            deviations = [row.deviation(score) for score in SCORES[1:]]
            macro = [f"{number} ± {one:.3f}" for number, one in zip(macro, deviations)]
        if row is not ordered[0] and is_within_noise(row, ordered[0]):
            accuracy += " ≈"
        last = f"{mean(row.last_accuracies):.2%}" if row.last_accuracies else ""
        shares = ", ".join(f"{mean(layer):.2f}" for layer in zip(*row.shares))
        cells = [row.name, str(len(row.seconds)), accuracy, last, *macro, shares]
        lines.append(f"| {' | '.join(cells)} | {mean(row.seconds):.0f} s |")
    return "\n".join(lines)


def _ordered(rows: Sequence[Row]) -> List[Row]:
    """The best first."""
    return sorted(rows, key=lambda row: -row.mean("accuracy"))


def _confusion(rows: Sequence[Row]) -> str:
    """What the best row takes for what, over all its seeds."""
    best = _ordered(rows)[0]
    lines = [
        f"| {best.name}: true class | {' | '.join(f'as {name}' for name in best.classes)} |",
        "|---|" + "---:|" * len(best.classes),
    ]
    for name, counts in zip(best.classes, best.confusion):
        lines.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return "\n".join(lines)


def is_within_noise(row: Row, best: Row) -> bool:
    """
    Whether the seeds don't show that `row` is less accurate than `best`. A row that needs no seed
    is compared as a number that is known; the only seed of another row has as much noise as those
    of `best`.
    """
    ours, theirs = (one.scores["accuracy"] for one in (row, best))
    if row.deviation("accuracy") == best.deviation("accuracy") == 0.0:
        return ours[0] == theirs[0]
    if len(theirs) < 2:
        return False
    if row.needs_no_seed:
        return bool(ttest_1samp(theirs, ours[0]).pvalue >= CERTAIN)
    if len(ours) < 2:
        deviation = best.deviation("accuracy") * math.sqrt(1 + 1 / len(theirs))
        distance = abs(best.mean("accuracy") - ours[0]) / deviation
        return bool(2 * stats.t.sf(distance, len(theirs) - 1) >= CERTAIN)
    return bool(ttest_ind(ours, theirs, equal_var=False).pvalue >= CERTAIN)


def write_json(rows: Sequence[Row], path: Path) -> None:
    """All numbers of all rows, with means and standard deviations."""
    described: List[Dict[str, Any]] = [
        {
            **row._asdict(),
            "means": {score: row.mean(score) for score in SCORES},
            "deviations": {score: row.deviation(score) for score in SCORES},
        }
        for row in rows
    ]
    with whole_file(path) as part:
        part.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
