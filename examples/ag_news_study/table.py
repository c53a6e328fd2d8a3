"""The results as a table and as JSON."""

import json
from pathlib import Path
from statistics import mean
from typing import List, Sequence

from results import SCORES, Row
from scipy.stats import ttest_ind

CERTAIN = 0.05
"""A difference that chance alone makes less often than this is called one."""


PARTS = {
    "mixes": "One classifier over different vectors, of descriptions",
    "descriptions": "The best classifiers, of descriptions",
    "titles": "The best classifiers, of titles and descriptions",
}
"""The parts of the study and their headings."""

NOTE = (
    "≈: within noise of the best row (Welch's t-test over the seeds, p of 0.05 or more; where "
    "there is one seed, within one standard deviation)."
)


def markdown(rows: Sequence[Row]) -> str:
    """
    # Returns

    `str`
        A table for each part that has a row, under its heading.
    """
    by_part = {part: [row for row in rows if row.part == part] for part in PARTS}
    tables = [
        f"### {PARTS[part]}\n\n{_table(members)}" for part, members in by_part.items() if members
    ]
    return "\n\n".join([*tables, NOTE]) + "\n"


def _table(rows: Sequence[Row]) -> str:
    """
    The best row first: mean and standard deviation over the seeds. Rows whose accuracies can't be
    told from those of the best are marked.
    """
    ordered = sorted(rows, key=lambda row: -row.mean_accuracy)
    lines = [
        "| vectors, mix | seeds | accuracy | precision | recall | F1 | layers' shares | time |",
        "|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for row in ordered:
        accuracy = f"{row.mean_accuracy:.2%}"
        if len(row.seconds) > 1:
            accuracy += f" ± {100 * row.deviation:.2f}"
        if row is not ordered[0] and is_within_noise(row, ordered[0]):
            accuracy += " ≈"
        macro = [f"{mean(row.scores[score]):.3f}" for score in SCORES[1:]]
        shares = ", ".join(f"{mean(layer):.2f}" for layer in zip(*row.shares))
        cells = [row.name, str(len(row.seconds)), accuracy, *macro, shares]
        lines.append(f"| {' | '.join(cells)} | {mean(row.seconds):.0f} s |")
    return "\n".join(lines)


def is_within_noise(row: Row, best: Row) -> bool:
    """Whether the seeds don't show that `row` is less accurate than `best`."""
    accuracies = [one.scores["accuracy"] for one in (row, best)]
    if min(map(len, accuracies)) < 2 or row.deviation == best.deviation == 0.0:
        return best.mean_accuracy - row.mean_accuracy <= max(row.deviation, best.deviation)
    return bool(ttest_ind(*accuracies, equal_var=False).pvalue >= CERTAIN)


def write_json(rows: Sequence[Row], path: Path) -> None:
    """All numbers of all rows, with means and standard deviations."""
    described: List[dict] = [
        {**row._asdict(), "mean_accuracy": row.mean_accuracy, "deviation": row.deviation}
        for row in rows
    ]
    path.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
