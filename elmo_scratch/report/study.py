"""The parts of a report on the result file of a study, and on a search."""

import json
import math
from typing import Any, Dict, List, Tuple

from elmo_scratch.files.strict_json import printable
from elmo_scratch.report.charts import best_dots, dots, scatter, stacked
from elmo_scratch.report.comparison import Verdict, verdicts, verdicts_in_words
from elmo_scratch.report.document import (
    Block,
    Cell,
    Column,
    Folded,
    Paragraph,
    Section,
    Table,
    difference_cell,
    is_share,
    metric_cell,
    shown_mean,
    shown_metric,
    shown_seconds,
)
from elmo_scratch.report.errors import class_table, matrix, most_confused
from elmo_scratch.report.metrics import Confusion
from elmo_scratch.report.results import Study, Way
from elmo_scratch.report.run import Measure
from elmo_scratch.search import KeptSearch
from elmo_scratch.search.study import BEST_FILE, KeptTrial, short_names

WITHOUT = ("none", "no biLM")
"""What studies call the way that does without what they are about."""


def study_sections(study: Study, name: str) -> List[Section]:
    """What the study brings beside doing without, if it says so, then each of its parts."""
    sections = [
        Section(f"{name}: {part}", _part(ways, study.scores))
        for part, ways in study.parts().items()
    ]
    gains = _gains(study)
    return [Section(f"{name}: gains", gains), *sections] if gains else sections


def _gains(study: Study) -> List[Block]:
    score, rows = study.scores[0], []
    for part, ways in study.parts().items():
        without = next((way for way in ways if way.name in WITHOUT), None)
        if without is None or len(ways) == 1:
            continue
        for way in ways:
            mean = way.mean(score)
            row = [
                Cell(part),
                Cell(way.name),
                Cell(f"{len(way.trainings)}", len(way.trainings)),
                Cell(shown_mean(score, mean, way.deviation(score)), mean),
            ]
            rows.append([*row, *_gain_cells(way, without, score)])
    if not rows:
        return []
    columns = [
        Column("part"),
        Column("experiment"),
        Column("trainings", is_number=True),
        Column(score, is_number=True),
        Column("gain", is_number=True),
        Column("in standard deviations", is_number=True),
        Column("errors less", is_number=True),
    ]
    caption = (
        "What each experiment gains beside the one without ELMo of its part, which is called "
        f"{' or '.join(f'“{name}”' for name in WITHOUT)}: "
        "means of the best epoch on the validation data over the seeds, ± standard deviation. A "
        "gain is also told in standard deviations of the difference between two single trainings, "
        "and as the share of the errors that are gone."
    )
    return [Table(caption, columns, rows)]


def _gain_cells(way: Way, without: Way, score: str) -> Tuple[Cell, Cell, Cell]:
    if way is without:
        return Cell(""), Cell(""), Cell("")
    gain = way.mean(score) - without.mean(score)
    spreads = way.deviation(score), without.deviation(score)
    noise = math.hypot(*(spread or 0.0 for spread in spreads)) if None not in spreads else 0.0
    errors = 1.0 - without.mean(score)
    less = gain / errors if is_share(score) and 0.0 < errors <= 1.0 else None
    return (
        difference_cell(score, gain),
        Cell(f"{gain / noise:+.1f}".replace("-", "−"), gain / noise) if noise else Cell(""),
        Cell(f"{100 * less:.1f} %".replace("-", "−"), less) if less is not None else Cell(""),
    )


def _part(ways: List[Way], scores: Tuple[str, ...]) -> List[Block]:
    """Its ways beside each other, the best first, then what they confuse."""
    score = scores[0]
    ordered = sorted(ways, key=lambda way: -way.mean(score))
    judged = verdicts([way.values(score) for way in ordered])
    best = shown_mean(score, ordered[0].mean(score), ordered[0].deviation(score))
    names = [way.name for way in ordered]
    words = verdicts_in_words(Measure(score, True), names, best, judged)
    found: List[Block] = [Paragraph(words), _ways(ordered, score, judged)]
    found.append(best_dots(score, [(way.name, way.values(score)) for way in ordered]))
    if scores[1:]:
        found.append(_other_scores(ordered, scores[1:]))
    shares = [(way.name, way.shares()) for way in ordered if way.shares()]
    if shares:
        caption = "The share of each layer in the mix after the best epoch, as a mean of the seeds."
        found.append(stacked(caption, shares))
    return [*found, *_confused(ordered)]


def _ways(ways: List[Way], score: str, judged: List[Verdict]) -> Table:
    has_last = any(way.last() is not None for way in ways)
    columns = [
        Column("experiment"),
        Column("trainings", is_number=True),
        Column(score, is_number=True),
        Column("from the best", is_number=True),
        Column("verdict"),
        *([Column("after the last epoch", is_number=True)] if has_last else []),
        Column("time", is_number=True),
    ]
    rows = []
    for way, verdict in zip(ways, judged):
        mean, seconds = way.mean(score), way.seconds()
        rows.append(
            [
                Cell(way.name),
                Cell(f"{len(way.trainings)}", len(way.trainings)),
                Cell(shown_mean(score, mean, way.deviation(score)), mean),
                difference_cell(score, mean - ways[0].mean(score)),
                Cell(verdict.value),
                *([metric_cell(score, way.last())] if has_last else []),
                Cell("") if seconds is None else Cell(shown_seconds(seconds), seconds),
            ]
        )
    caption = (
        "Experiments, the best first: means over trainings that differ only in their seeds, ± "
        "standard deviation, of the best epoch on the validation data, which chose it; the time is "
        "that of one training."
    )
    return Table(caption, columns, rows)


def _other_scores(ways: List[Way], scores: Tuple[str, ...]) -> Table:
    columns = [Column("experiment"), *(Column(_title(name), is_number=True) for name in scores)]
    rows = [
        [
            Cell(way.name),
            *(
                Cell(shown_mean(name, way.mean(name), way.deviation(name)), way.mean(name))
                for name in scores
            ),
        ]
        for way in ways
    ]
    return Table("What else was measured, in the same epochs.", columns, rows)


def _title(score: str) -> str:
    return score.replace("_", " ").replace("f1", "F1")


def _confused(ways: List[Way]) -> List[Block]:
    """The classes of the best way, F1 of all, and on demand the classes of the others."""
    known = [(way, confusion) for way in ways for confusion in [way.confusion()] if confusion]
    if not known:
        return []
    best, first = known[0]
    found: List[Block] = [
        matrix(first, _data(best)),
        class_table(first.class_scores(), _data(best)),
        *most_confused(first),
    ]
    if len(known) == 1:
        return found
    columns = [Column("experiment"), *(Column(name, is_number=True) for name in first.names)]
    rows = []
    for way, confusion in known:
        f1 = {one.name: one.f1 for one in confusion.class_scores()}
        rows.append([Cell(way.name), *(metric_cell("f1", f1.get(name)) for name in first.names)])
    caption = "F1 of each class by each experiment, over all its trainings."
    found.append(Table(caption, columns, rows))
    title = f"Confusion matrices and scores of classes of the other {len(known) - 1} experiments"
    matrices = [matrix(confusion, _data(way)) for way, confusion in known[1:]]
    return [*found, Folded(title, [*matrices, _classes(known[1:])])]


def _classes(known: List[Tuple[Way, Confusion]]) -> Table:
    """Precision, recall and F1 of each class by several ways."""
    columns = [
        *(Column(title) for title in ("experiment", "class")),
        *(Column(title, is_number=True) for title in ("true", "precision", "recall", "F1")),
    ]
    rows = [
        [
            Cell(way.name),
            Cell(one.name),
            Cell(f"{one.num_true:,}", one.num_true),
            *(metric_cell("f1", value) for value in (one.precision, one.recall, one.f1)),
        ]
        for way, confusion in known
        for one in confusion.class_scores()
    ]
    return Table("Precision, recall and F1 of each class, over all trainings.", columns, rows)


def _data(way: Way) -> str:
    seeds = sum(one.confusion is not None for one in way.trainings)
    over = f", summed over {seeds} seeds" if seeds > 1 else ""
    return f"the validation data by “{way.name}”{over}"


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
