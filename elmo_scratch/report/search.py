"""The part of a report on a search."""

import json
from typing import Any, Dict, List

from elmo_scratch.report.charts import dots, scatter
from elmo_scratch.report.document import (
    Block,
    Cell,
    Column,
    Paragraph,
    Section,
    Table,
    metric_cell,
    shown_metric,
    shown_seconds,
)
from elmo_scratch.report.untrusted import printable
from elmo_scratch.search import KeptSearch
from elmo_scratch.search.kept import KeptTrial
from elmo_scratch.search.study import BEST_FILE, short_names

MAX_CHARTS = 12
"""So many parameters are drawn beside the metric."""

MAX_CHOICES = 16
"""A parameter that isn't a number is drawn with at most so many values."""


def search_section(search: KeptSearch, name: str) -> Section:
    """Shows what was searched, all trials, and each parameter beside what was reached."""
    blocks: List[Block] = [_facts(search), Paragraph(_in_words(search)), _trials(search)]
    failed = [one for one in search.trials if one.reason]
    if failed:
        columns = [Column("trial", is_number=True), Column("the end of its log")]
        reasons = [printable(" / ".join(one.reason.splitlines()), 1000) for one in failed]
        rows = [
            [Cell(f"{one.number}", one.number), Cell(reason)]
            for one, reason in zip(failed, reasons)
        ]
        blocks.append(Table("Why trials failed.", columns, rows))
    return Section(f"Search {name}", [*blocks, *_charts(search)])


def _facts(search: KeptSearch) -> Table:
    endings = [one.ending for one in search.trials]
    counts = ", ".join(f"{endings.count(one)} {one}" for one in dict.fromkeys(endings))
    better = "higher" if search.metric.is_maximized else "lower"
    facts = {
        "folder": str(search.folder),
        "method": search.method,
        "metric": f"{search.metric.name}; {better} is better",
        "trials": f"{len(endings)}: {counts}" if endings else "none",
        **search.parameters,
    }
    rows = [[Cell(printable(name)), Cell(printable(text, 1000))] for name, text in facts.items()]
    return Table("What was searched.", [Column(""), Column("")], rows)


def _in_words(search: KeptSearch) -> str:
    metric, best = printable(search.metric.name), search.finished()[:1]
    if not best:
        return f"No trial that has measured {metric} has come to its end."
    number, value = best[0].number, best[0].value
    words = f"Trial {number} has the best {metric}, {shown_metric(metric, value or 0.0)}. "
    words += "Each trial is one training: how much of the differences is noise is not known."
    if (search.folder / BEST_FILE).is_file():
        words += f" Its settings are in {BEST_FILE}, as `allennlp train --overrides` takes them."
    return words


def _trials(search: KeptSearch) -> Table:
    metric, names = printable(search.metric.name), list(search.parameters)
    order = {one.number: place for place, one in enumerate(search.finished())}
    columns = [
        Column("trial", is_number=True),
        Column(metric, is_number=True),
        *(Column(printable(title, 40), _is_number(search, name)) for name, title in _titles(names)),
        Column("state"),
        Column("time", is_number=True),
    ]
    rows = [
        [
            Cell(f"{one.number}", one.number),
            metric_cell(metric, one.value),
            *(_value_cell(one.values[name]) if name in one.values else Cell("") for name in names),
            Cell(one.ending),
            Cell("") if one.seconds is None else Cell(shown_seconds(one.seconds), one.seconds),
        ]
        for one in sorted(search.trials, key=lambda one: order.get(one.number, len(order)))
    ]
    caption = (
        "All trials, the best first. Those that were stopped early show what they had reached then."
    )
    return Table(caption, columns, rows)


def _titles(names: List[str]) -> List[Any]:
    return list(zip(names, short_names(names)))


def _value_cell(value: Any) -> Cell:
    if _is_finite(value):
        return Cell(f"{value:.4g}" if type(value) is float else f"{value}", float(value))
    return Cell(printable(_as_text(value)))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and -1e300 < value < 1e300


def _is_number(search: KeptSearch, name: str) -> bool:
    values = [one.values[name] for one in search.trials if name in one.values]
    return bool(values) and all(map(_is_finite, values))


def _charts(search: KeptSearch) -> List[Block]:
    """Draws what was reached, by trials, and beside each parameter that has two values or more."""
    metric = printable(search.metric.name)
    reached = [one for one in search.trials if one.value is not None]
    if len(reached) < 2:
        return []
    found: List[Block] = [
        scatter(
            "What each trial reached, in their order, and the best so far as a line.",
            ("trial", metric),
            _by_ending(reached, {one.number: float(one.number) for one in reached}),
            _best_so_far(search, reached),
        )
    ]
    for name, title in _titles(list(search.parameters))[:MAX_CHARTS]:
        having = [one for one in reached if name in one.values]
        shown_title = printable(title, 40)
        caption = f"What was reached with each value of {printable(name)}."
        if _is_number(search, name) and len({one.values[name] for one in having}) > 4:
            places = {one.number: float(one.values[name]) for one in having}
            found.append(scatter(caption, (shown_title, metric), _by_ending(having, places)))
            continue
        groups: Dict[str, List[float]] = {}
        for one in having:
            if one.ending == "finished" and one.value is not None:
                groups.setdefault(_as_text(one.values[name]), []).append(one.value)
        if 1 < len(groups) <= MAX_CHOICES:
            caption += " Dots are finished trials, which differ in other settings too."
            found.append(dots(caption, metric, sorted(groups.items())))
    return found


def _by_ending(trials: List[KeptTrial], places: Dict[int, float]) -> Dict[str, Any]:
    """The points of trials, a place and what was reached there, by how the trials ended."""
    points: Dict[str, Any] = {}
    for one in trials:
        points.setdefault(one.ending, []).append((places[one.number], one.value))
    return points


def _best_so_far(search: KeptSearch, trials: List[KeptTrial]) -> List[Any]:
    better = max if search.metric.is_maximized else min
    line: List[Any] = []
    for one in trials:
        if one.ending == "finished":
            best = one.value if not line else better(one.value, line[-1][1])
            line.append((float(one.number), best))
    return line
