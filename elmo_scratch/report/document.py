"""What a report consists of, whether it becomes a page or a PDF."""

import math
from typing import TYPE_CHECKING, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = ("accuracy", "precision", "recall", "f1")
"""Parts of the names of metrics that are shares of 1."""


class Cell(NamedTuple):
    """A cell of a table. `value` is what a column of numbers is sorted by; `None` comes last."""

    text: str
    value: Optional[float] = None


class Column(NamedTuple):
    """A column of a table; one of numbers is aligned to the right."""

    title: str
    is_number: bool = False


class Table(NamedTuple):
    """
    A table.

    # Parameters

    caption : `str`
        A sentence or two on what it shows.
    columns : `Sequence[Column]`
        Their titles.
    rows : `Sequence[Sequence[Cell]]`
        A cell for each column.
    """

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]


class Chart(NamedTuple):
    """
    A picture.

    # Parameters

    caption : `str`
        A sentence or two on what it shows.
    alternative : `str`
        What it shows, for those who can't see it.
    draw : `Callable[[Axes], None]`
        Draws it.
    size : `Tuple[float, float]`
        Width and height in inches, at a font of 9 points.
    margins : `Tuple[float, float]`
        What lies left of the axes and below them, in inches of the same kind.
    """

    caption: str
    alternative: str
    draw: Callable[["Axes"], None]
    size: Tuple[float, float]
    margins: Tuple[float, float]


class Paragraph(NamedTuple):
    """A few sentences."""

    text: str


class Folded(NamedTuple):
    """
    What a page shows on demand, and a PDF in any case.

    # Parameters

    title : `str`
        What it is.
    blocks : `Sequence[Union[Paragraph, Table, Chart]]`
        What is shown then.
    """

    title: str
    blocks: Sequence[Union[Paragraph, Table, Chart]]


Block = Union[Paragraph, Table, Chart, Folded]


class Section(NamedTuple):
    """A part of a report with a heading."""

    title: str
    blocks: List[Block]


class Report(NamedTuple):
    """The whole of it."""

    title: str
    sections: List[Section]


def shown(number: float) -> str:
    """A number with four digits that count."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    return f"{number:,.0f}" if 10_000 <= abs(number) < 1e15 else f"{number:.4g}"


def is_share(metric: str) -> bool:
    """Whether a metric is a share of 1, such as accuracy."""
    return any(part in metric for part in SHARES)


def shown_metric(metric: str, number: float) -> str:
    """A number as one reads it: accuracy, precision, recall and F1 in percent."""
    if is_share(metric) and 0 <= number <= 1:
        return f"{100 * number:.2f} %"
    return shown(number)


def shown_mean(metric: str, mean: float, deviation: Optional[float]) -> str:
    """A mean and its standard deviation."""
    if deviation is None:
        return shown_metric(metric, mean)
    if is_share(metric) and 0 <= mean <= 1:
        return f"{100 * mean:.2f} % ± {100 * deviation:.2f}"
    return f"{shown(mean)} ± {deviation:.2g}"


def metric_cell(metric: str, number: Optional[float]) -> Cell:
    """The cell of a number; empty where there is none."""
    if number is None:
        return Cell("")
    return Cell(shown_metric(metric, number), number if math.isfinite(number) else None)


def difference_cell(metric: str, difference: float) -> Cell:
    """The cell of a difference between two numbers, of shares in points; empty where it is 0."""
    if difference == 0:
        return Cell("", 0.0)
    if is_share(metric):
        return Cell(f"{100 * difference:+.2f} points".replace("-", "−"), difference)
    return Cell(f"{difference:+.4g}".replace("-", "−"), difference)


def shown_seconds(seconds: float) -> str:
    """A time span, in the two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes:02d} min"
