"""How well classes are told apart: scores of each, and what was predicted for what."""

from typing import List, Sequence

from elmo_scratch.report.charts import heat_map
from elmo_scratch.report.document import Cell, Chart, Column, Table, metric_cell
from elmo_scratch.report.metrics import ClassScores, Confusion

MAX_CONFUSED = 12
"""Pairs of classes in a table."""


def class_table(scores: Sequence[ClassScores], data: str) -> Table:
    """Precision, recall and F1 of each class on the data."""
    columns = [
        Column("class"),
        *(Column(title, is_number=True) for title in ("true", "precision", "recall", "F1")),
    ]
    rows = [
        [
            Cell(one.name),
            Cell("" if one.num_true is None else f"{one.num_true:,}", one.num_true),
            *(metric_cell("f1", value) for value in (one.precision, one.recall, one.f1)),
        ]
        for one in scores
    ]
    return Table(f"Precision, recall and F1 of each class on {data}.", columns, rows)


def matrix(confusion: Confusion, data: str) -> Chart:
    """A heat map of what was predicted for what on the data."""
    is_small = len(confusion.names) <= 8
    numbers = "Numbers are counts" if is_small else "Numbers are percents of the true class"
    caption = (
        f"Which class was predicted for which on {data}. {numbers}; the stronger "
        "the colour of a cell, the larger its share of the true class, which has the row."
    )
    return heat_map(caption, confusion)


def most_confused(confusion: Confusion) -> List[Table]:
    """A table of the pairs of classes that are confused most often, if any are."""
    columns = [
        Column("true"),
        Column("predicted"),
        Column("times", is_number=True),
        Column("of the true class", is_number=True),
    ]
    rows = [
        [
            Cell(true),
            Cell(predicted),
            Cell(f"{count:,}", count),
            Cell(f"{100 * share:.1f} %", share),
        ]
        for true, predicted, count, share in confusion.most_confused(MAX_CONFUSED)
    ]
    return [Table("What was confused most often.", columns, rows)] if rows else []
