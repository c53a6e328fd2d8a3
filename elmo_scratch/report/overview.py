"""The whole report: all trainings beside each other, experiments compared, then each training."""

import math
from pathlib import Path
from typing import List, Mapping, Optional, Sequence

from elmo_scratch.report.charts import Series, curves, dots
from elmo_scratch.report.comparison import Comparison, Experiment, Verdict, compared, settings_label
from elmo_scratch.report.document import (
    Block,
    Cell,
    Column,
    Paragraph,
    Report,
    Section,
    Table,
    is_share,
    shown_mean,
    shown_metric,
    shown_seconds,
)
from elmo_scratch.report.errors import Errors
from elmo_scratch.report.run import Run, run_names
from elmo_scratch.report.training import (
    shown_epochs,
    shown_seeds,
    tokens_per_second,
    training_section,
)
from elmo_scratch.report.untrusted import printable

HEADLINES = ("perplexity", "accuracy", "macro_f1")
"""Metrics that experiments are also shown by, where all have them."""


def report_of(
    runs: Sequence[Run],
    left_out: Sequence[str] = (),
    errors: Optional[Mapping[Path, Errors]] = None,
) -> Report:
    """
    # Parameters

    runs : `Sequence[Run]`
        At least one.
    left_out : `Sequence[str]`
        Why others that were asked for are not among them, a line each.
    errors : `Mapping[Path, Errors]`, optional
        Of those runs that have been asked for them, by their folders.

    # Returns

    `Report`
        The same for the same content of the runs' folders.
    """
    names = run_names([run.folder for run in runs])
    title = f"Training {names[0]}" if len(runs) == 1 else f"{len(runs)} trainings"
    sections = []
    if len(runs) > 1 or left_out:
        notes = [Paragraph(f"Left out: {printable(reason, 1000)}") for reason in left_out]
        sections.append(Section("Overview", [_overview(runs, names), *notes]))
    comparisons = compared(runs, names)
    for comparison in comparisons:
        heading = f"Comparison by {comparison.measure.name}"
        sections.append(Section(heading, _comparison(comparison)))
    sections += [
        training_section(run, name, (errors or {}).get(run.folder))
        for run, name in zip(runs, names)
    ]
    return Report(title, sections)


def _overview(runs: Sequence[Run], names: Sequence[str]) -> Table:
    columns = [
        Column("training"),
        Column("state"),
        Column("model"),
        Column("seed"),
        Column("epochs", is_number=True),
        Column("best on validation data", is_number=True),
        Column("time", is_number=True),
        Column("tokens/s", is_number=True),
    ]
    rows = []
    for run, name in zip(runs, names):
        speed, score, metric = tokens_per_second(run), run.score, run.measure.name
        best = Cell("")
        if score is not None:
            text = f"{metric} {shown_metric(metric, score)}"
            best = Cell(text, score if math.isfinite(score) else None)
        rows.append(
            [
                Cell(name),
                Cell(run.state.value),
                Cell(run.model_type),
                Cell(shown_seeds(run)),
                Cell(shown_epochs(run), len(run.epochs)),
                best,
                Cell(shown_seconds(run.seconds), run.seconds) if run.seconds else Cell(""),
                Cell(f"{speed:,.0f}", speed) if speed is not None else Cell(""),
            ]
        )
    return Table("All trainings of this report.", columns, rows)


def _comparison(comparison: Comparison) -> List[Block]:
    metric, experiments = comparison.measure.name, comparison.experiments
    found: List[Block] = []
    if experiments:
        found += [Paragraph(_in_words(comparison)), _table(comparison)]
        groups = [(one.name, one.values(metric)) for one in experiments]
        caption = (
            f"The best {metric} of each training on the validation data, and one standard "
            "deviation around the mean of each experiment."
        )
        found.append(dots(caption, metric, groups))
    everything = [*experiments, *comparison.unjudged]
    series = _series(everything, f"validation_{metric}")
    if any(len(one.points) > 1 for one in series):
        caption = f"Course of {metric} on the validation data in all trainings, finished or not."
        found.append(curves(caption, metric, series))
    if comparison.unjudged:
        names = ", ".join(one.name for one in comparison.unjudged)
        found.append(Paragraph(f"Without a finished training that measures {metric}: {names}."))
    return found


def _in_words(comparison: Comparison) -> str:
    """What the comparison comes to."""
    metric, first = comparison.measure.name, comparison.experiments[0]
    value = shown_mean(metric, first.mean(metric), first.deviation(metric))
    if len(comparison.experiments) == 1:
        return f"“{first.name}” reaches {metric} {value}."
    better = "higher" if comparison.measure.higher_is_better else "lower"
    if Verdict.UNKNOWN in comparison.verdicts:
        return (
            f"“{first.name}” has the best {metric}, {value} ({better} is better). No experiment "
            "has two seeds: how much of the differences is noise is not known."
        )
    close = [
        f"“{one.name}”"
        for one, verdict in zip(comparison.experiments, comparison.verdicts)
        if verdict is Verdict.NOISE
    ]
    end = f"Within noise of it: {', '.join(close)}." if close else "All others are worse."
    return (
        f"“{first.name}” has the best mean {metric}, {value} ({better} is better). {end} An "
        "experiment is called worse where its seeds rule out, at 5 % for all experiments together, "
        "that it is the best (Hsu 1984); all are taken to have the same variance. The seeds of one "
        "text say nothing of other texts."
    )


def _table(comparison: Comparison) -> Table:
    metric, experiments = comparison.measure.name, comparison.experiments
    others = [
        name
        for name in HEADLINES
        if name != metric and all(one.values(name) for one in experiments)
    ]
    columns = [
        Column("experiment"),
        Column("differs in"),
        Column("trainings", is_number=True),
        Column(metric, is_number=True),
        Column("from the best", is_number=True),
        Column("verdict"),
        *(Column(name, is_number=True) for name in others),
    ]
    best = experiments[0].mean(metric)
    rows = []
    for one, verdict, differing in zip(experiments, comparison.verdicts, comparison.differences()):
        count, mean = len(one.values(metric)), one.mean(metric)
        shown_count = f"{count}" if count == len(one.runs) else f"{count} of {len(one.runs)}"
        rows.append(
            [
                Cell(one.name),
                Cell(settings_label(differing)),
                Cell(shown_count, count),
                Cell(shown_mean(metric, mean, one.deviation(metric)), mean),
                _difference(metric, mean - best),
                Cell(verdict.value),
                *(
                    Cell(shown_mean(name, one.mean(name), one.deviation(name)), one.mean(name))
                    for name in others
                ),
            ]
        )
    caption = (
        "Experiments, the best first: means of the best epoch on the validation data over "
        "trainings that differ only in their seeds, ± standard deviation."
    )
    if "perplexity" in (metric, *others):
        caption += " Perplexities compare over one vocabulary only."
    return Table(caption, columns, rows)


def _difference(metric: str, difference: float) -> Cell:
    if difference == 0:
        return Cell("", 0.0)
    if is_share(metric):
        return Cell(f"{100 * difference:+.2f} points".replace("-", "−"), difference)
    return Cell(f"{difference:+.4g}".replace("-", "−"), difference)


def _series(experiments: Sequence[Experiment], name: str) -> List[Series]:
    """A curve for each training, in the colour of its experiment, which the first one names."""
    found = []
    for color, one in enumerate(experiments):
        title = printable(one.name, 30)
        for run in one.runs:
            points = run.curve(name)
            if points:
                found.append(Series(title, points, color=color))
                title = ""
    return found
