"""The pictures of a report: curves, matrices, and experiments beside each other."""

import math
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Iterator, List, Literal, Mapping, NamedTuple, Sequence, Tuple

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.strict_json import printable
from elmo_scratch.report.document import Chart, is_share, shown, shown_metric
from elmo_scratch.report.metrics import Confusion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT = "#1a1a1b", "#c9c9ca"
"""The colours of text and of grids. A page puts its own colours in their place."""

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""
Colours that colour-blind people tell apart (Okabe and Ito 2008), without black and yellow, each of
which is hard to see on one of a light and a dark page.
"""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Which, beside colours, tell series apart: one more than there are colours."""

FONT_SIZE = 9.0
"""Points, on a page."""

CURVES = ((4.4, 2.9), (0.62, 0.46))
"""Size and margins of a chart of curves."""

MAX_CLASSES = 24
"""A matrix is drawn with at most so many classes."""

LOGARITHMIC = 20.0
"""The ratio of largest to smallest value from which on a curve is drawn on a logarithmic scale."""

WHITE_FROM = 0.85
"""The share of a row from which on a cell is so dark that its text is white."""


class Series(NamedTuple):
    """
    Values over epochs, counted from 1 on. A thin one is drawn dashed; one without a name is not in
    the legend.
    """

    name: str
    points: Sequence[Tuple[int, float]]
    is_thin: bool = False
    color: int = 0


def check_matplotlib() -> None:
    """Raises `ConfigurationError` if Matplotlib or Jinja2 is missing."""
    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"a report needs {' and '.join(missing)}, which is not installed: "
            "pip install 'elmo_scratch[report]', or pip install 'matplotlib>=3.8' jinja2"
        )


@contextmanager
def drawing(font_size: float) -> Iterator[None]:
    """
    Matplotlib draws the same in the block whatever the user's settings are: text of data is never
    read as a formula, and nothing depends on the time.
    """
    import warnings

    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "axes.edgecolor": FAINT,
                "axes.formatter.use_mathtext": False,
                "axes.grid": True,
                "axes.labelcolor": INK,
                "axes.spines.right": False,
                "axes.spines.top": False,
                "font.size": font_size,
                "axes.labelsize": font_size,
                "grid.color": FAINT,
                "grid.linewidth": 0.5,
                "legend.fontsize": font_size * 0.9,
                "legend.frameon": False,
                "lines.linewidth": 1.6,
                "lines.markersize": 4.0,
                "pdf.fonttype": 42,
                "svg.fonttype": "none",
                "svg.hashsalt": "elmo_scratch",
                "text.color": INK,
                "text.parse_math": False,
                "xtick.color": INK,
                "ytick.color": INK,
                "xtick.labelsize": font_size * 0.9,
                "ytick.labelsize": font_size * 0.9,
                "xtick.major.size": 0.0,
                "ytick.major.size": 0.0,
                "ytick.minor.size": 0.0,
            }
        )
        # A page is shown in fonts of the reader's, and a PDF in fonts that have its letters.
        warnings.filterwarnings("ignore", message=".*[Gg]lyph.*missing")
        yield


def curves(
    caption: str, label: str, series: Sequence[Series], starts_at_zero: bool = False
) -> Chart:
    """
    # Parameters

    caption : `str`
        What the chart shows.
    label : `str`
        What its vertical axis shows: the name of a metric.
    series : `Sequence[Series]`
        At least one; what is infinite or NaN in them is left out.
    starts_at_zero : `bool`
        Whether the vertical axis does.

    # Returns

    `Chart`
        Their values over epochs.
    """
    finite = [
        one._replace(points=[point for point in one.points if math.isfinite(point[1])])
        for one in series
    ]

    def tick(value: float, _: int) -> str:
        return f"{100 * value:.4g} %" if is_share(label) else shown(value)

    def draw(axes: "Axes") -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

        for one in finite:
            color = SERIES[one.color % len(SERIES)]
            axes.plot(
                [epoch for epoch, _ in one.points],
                [value for _, value in one.points],
                color=color,
                label=one.name or "_",
                linestyle="--" if one.is_thin else "-",
                linewidth=1.0 if one.is_thin else 1.8,
                marker=MARKERS[one.color % len(MARKERS)],
                markerfacecolor="none" if one.is_thin else color,
                # Markers of many epochs would hide the line.
                markevery=max(len(one.points) // 12, 1),
            )
        values = [value for one in finite for _, value in one.points]
        if values and min(values) > 0 and max(values) / min(values) > LOGARITHMIC:
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(FuncFormatter(tick))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        if starts_at_zero:
            axes.set_ylim(bottom=0)
        axes.set_xlabel("epoch")
        axes.set_ylabel(label)
        if 1 < sum(bool(one.name) for one in finite) <= 8:
            axes.legend()

    ends = [
        f"{one.name} from {shown_metric(label, one.points[0][1])} in epoch {one.points[0][0]} to "
        f"{shown_metric(label, one.points[-1][1])} in epoch {one.points[-1][0]}"
        for one in finite
        if one.name and one.points
    ]
    alternative = f"Curves of {label} over epochs: {'; '.join(ends[:12])}."
    return Chart(caption, alternative, draw, *CURVES)


def heat_map(caption: str, confusion: Confusion) -> Chart:
    """
    The counts of a matrix. The stronger the colour of a cell, the larger its share of the true
    class. Of more than `MAX_CLASSES` classes the first are shown, the rest as one.
    """
    matrix = confusion.merged(MAX_CLASSES)
    size = len(matrix.names)
    names = [printable(name, 18) for name in matrix.names]
    is_small = size <= 8

    def draw(axes: "Axes") -> None:
        from matplotlib import rcParams
        from matplotlib.patches import Rectangle

        font_size = rcParams["font.size"] * (1.0 if is_small else 0.9 if size <= 12 else 0.72)
        for row, counts in enumerate(matrix.counts):
            for column, count in enumerate(counts):
                share = count / sum(counts) if count else 0.0
                if share:
                    cell = Rectangle((column - 0.5, row - 0.5), 1, 1, linewidth=0)
                    cell.set_facecolor((SERIES[0], share))
                    axes.add_patch(cell)
                text = f"{count:,}" if is_small else f"{100 * share:.0f}"
                if text == "0" and not is_small:
                    continue
                axes.text(
                    column,
                    row,
                    text,
                    ha="center",
                    va="center",
                    fontsize=font_size,
                    color="#ffffff" if share >= WHITE_FROM else INK,
                )
        axes.set_xlim(-0.5, size - 0.5)
        axes.set_ylim(size - 0.5, -0.5)
        axes.set_xticks(range(size), names, rotation=0 if is_small and size <= 4 else 90)
        axes.set_yticks(range(size), names)
        axes.tick_params(labelsize=font_size)
        axes.grid(False)
        axes.set_xlabel("predicted")
        axes.set_ylabel("true")

    hits = sum(matrix.counts[place][place] for place in range(size))
    total = sum(map(sum, matrix.counts))
    worst = "; ".join(
        f"{true} taken for {predicted} {count:,} times"
        for true, predicted, count, _ in matrix.most_confused(5)
    )
    alternative = (
        f"Confusion matrix of {size} classes: {hits:,} of {total:,} on the diagonal. "
        f"{worst or 'Nothing is confused'}."
    )
    longest = (0.075 if is_small else 0.058) * max(map(len, names))
    left = 0.45 + longest
    below = 0.5 if is_small and size <= 4 else 0.38 + longest
    edge = 2.6 if is_small else 4.2 if size <= 12 else 5.2
    size_of_chart = (left + edge + 0.15, below + edge * (0.75 if is_small else 0.85) + 0.1)
    return Chart(caption, alternative, draw, size_of_chart, (left, below))


def best_dots(metric: str, groups: Sequence[Tuple[str, List[float]]]) -> Chart:
    """Returns `dots` of the best value of each training, with the caption that says so."""
    caption = (
        f"The best {metric} of each training on the validation data, and one standard deviation "
        "around the mean of each experiment."
    )
    return dots(caption, metric, groups)


def dots(caption: str, label: str, groups: Sequence[Tuple[str, List[float]]]) -> Chart:
    """
    # Parameters

    caption : `str`
        What the chart shows.
    label : `str`
        The name of a metric.
    groups : `Sequence[Tuple[str, List[float]]]`
        Names of experiments, and the values of their trainings, at least one.

    # Returns

    `Chart`
        A line for each experiment, from the top: a dot for each training, and a bar from one
        standard deviation below the mean to one above it.
    """
    from statistics import mean, stdev

    names = [printable(name, 30) for name, _ in groups]

    def draw(axes: "Axes") -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        for place, (_, values) in enumerate(groups):
            if len(values) > 1:
                middle, spread = mean(values), stdev(values)
                axes.plot(
                    [middle - spread, middle + spread],
                    [place] * 2,
                    color=SERIES[5],
                    linewidth=7,
                    solid_capstyle="butt",
                )
                axes.plot([middle], [place], marker="|", markersize=12, color=INK)
            axes.plot(values, [place] * len(values), marker="o", linestyle="", color=SERIES[0])
        axes.set_yticks(range(len(groups)), names)
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: shown_metric(label, value)))
        axes.set_xlabel(label)

    means = "; ".join(
        f"{name} {shown_metric(label, mean(values))} (of {len(values)})"
        for name, (_, values) in zip(names, groups)
    )
    left = 0.25 + 0.075 * max(map(len, names))
    height = 0.75 + 0.3 * len(groups)
    return Chart(caption, f"Means of {label}: {means}.", draw, (left + 3.3, height), (left, 0.48))


def scatter(
    caption: str,
    labels: Tuple[str, str],
    groups: Mapping[str, Sequence[Tuple[float, float]]],
    line: Sequence[Tuple[float, float]] = (),
) -> Chart:
    """
    # Parameters

    caption : `str`
        What the chart shows.
    labels : `Tuple[str, str]`
        What its axes show: the second is the name of a metric.
    groups : `Mapping[str, Sequence[Tuple[float, float]]]`
        Finite points by what they are.
    line : `Sequence[Tuple[float, float]]`, optional (default = none)
        Finite points that steps lead through.

    # Returns

    `Chart`
        The points; on a logarithmic axis where what they are beside spans several magnitudes.
    """
    name, label = labels

    def draw(axes: "Axes") -> None:
        from matplotlib.ticker import FuncFormatter, NullFormatter

        if line:
            axes.step(*zip(*line), where="post", color=INK, linewidth=1.0)
        for place, (group, points) in enumerate(groups.items()):
            axes.plot(
                *zip(*points),
                linestyle="",
                marker=MARKERS[place],
                color=SERIES[place],
                markersize=5.5,
                label=group,
            )
        values = [place for points in groups.values() for place, _ in points]
        if min(values) > 0 and max(values) / min(values) > LOGARITHMIC:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown_metric(label, value)))
        axes.set_xlabel(name)
        axes.set_ylabel(label)
        if len(groups) > 1:
            axes.legend()

    spans = "; ".join(
        f"{len(points)} {group}, from {shown_metric(label, min(value for _, value in points))} to "
        f"{shown_metric(label, max(value for _, value in points))}"
        for group, points in groups.items()
    )
    size, (left, below) = CURVES
    return Chart(caption, f"{label} beside {name}: {spans}.", draw, size, (left + 0.15, below))


def histogram(caption: str, label: str, groups: Mapping[str, Sequence[float]]) -> Chart:
    """
    # Parameters

    caption : `str`
        What the chart shows.
    label : `str`
        What the numbers are.
    groups : `Mapping[str, Sequence[float]]`
        Finite numbers by what they are of, at least one of each.

    # Returns

    `Chart`
        How often which numbers occur, as a share of all, an outline for each group.
    """

    def draw(axes: "Axes") -> None:
        from matplotlib.lines import Line2D
        from matplotlib.ticker import PercentFormatter

        everything = [number for numbers in groups.values() for number in numbers]
        span = (min(everything), max(everything))
        lines = []
        for place, (name, numbers) in enumerate(groups.items()):
            color = SERIES[place % len(SERIES)]
            style: Literal["-", "--"] = "-" if place < len(SERIES) else "--"
            axes.hist(
                numbers,
                bins=40,
                range=span,
                weights=[1 / len(numbers)] * len(numbers),
                histtype="step",
                color=color,
                linestyle=style,
                linewidth=1.6,
            )
            lines.append(Line2D([], [], color=color, linestyle=style, label=printable(name, 30)))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlabel(label)
        axes.set_ylabel("share of pairs")
        if 1 < len(groups) <= 8:
            axes.legend(handles=lines)

    spans = "; ".join(
        f"{name} from {shown(min(numbers))} to {shown(max(numbers))}, mean "
        f"{shown(sum(numbers) / len(numbers))}"
        for name, numbers in groups.items()
    )
    return Chart(caption, f"Histograms of {label}: {spans}.", draw, *CURVES)


def stacked(caption: str, groups: Sequence[Tuple[str, List[float]]]) -> Chart:
    """
    # Parameters

    caption : `str`
        What the chart shows.
    groups : `Sequence[Tuple[str, List[float]]]`
        Names, and the shares of layers from the token layer on; at least one of each.

    # Returns

    `Chart`
        A line for each name, from the top, divided as the shares are.
    """
    names = [printable(name, 30) for name, _ in groups]

    def draw(axes: "Axes") -> None:
        from matplotlib import rcParams
        from matplotlib.ticker import PercentFormatter

        for place, (_, shares) in enumerate(groups):
            left = 0.0
            for layer, share in enumerate(shares):
                color = SERIES[layer % len(SERIES)]
                axes.barh(place, share, 0.72, left, facecolor=(color, 0.5), edgecolor=color)
                if share >= 0.08:
                    axes.text(
                        left + share / 2,
                        place,
                        f"{layer}: {100 * share:.0f} %",
                        ha="center",
                        va="center",
                        fontsize=rcParams["font.size"] * 0.85,
                    )
                left += share
        axes.set_yticks(range(len(groups)), names)
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.set_xlim(0, max(1.0, *(sum(shares) for _, shares in groups)))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.grid(False, axis="y")
        axes.set_xlabel("share of the mix; layer 0 is the token layer")

    shown_shares = "; ".join(
        f"{name} {', '.join(f'{100 * share:.0f} %' for share in shares)}"
        for name, (_, shares) in zip(names, groups)
    )
    left = 0.25 + 0.07 * max(map(len, names))
    height = 0.6 + 0.26 * len(groups)
    return Chart(
        caption, f"Shares of layers: {shown_shares}.", draw, (left + 3.3, height), (left, 0.48)
    )
