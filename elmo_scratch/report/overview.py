"""The whole report: all trainings beside each other, experiments compared, then each training."""

import math
import os
from pathlib import Path
from typing import Callable, List, Mapping, NamedTuple, Optional, Sequence, TypeVar

from allennlp.common.checks import ConfigurationError
from h5py import is_hdf5

from elmo_scratch.files.strict_json import printable
from elmo_scratch.report.charts import Series, best_dots, curves
from elmo_scratch.report.comparison import Comparison, Experiment, compared, settings_label
from elmo_scratch.report.document import (
    Block,
    Cell,
    Column,
    Paragraph,
    Report,
    Section,
    Table,
    difference_cell,
    shown_mean,
    shown_metric,
    shown_seconds,
)
from elmo_scratch.report.errors import Errors
from elmo_scratch.report.layers import DescribedLayers, describe_layers, layers_section
from elmo_scratch.report.results import Study, find_results, read_results
from elmo_scratch.report.run import Run, find_runs, read_run, run_names
from elmo_scratch.report.study import search_section, study_sections
from elmo_scratch.report.training import (
    shown_epochs,
    shown_seeds,
    tokens_per_second,
    training_section,
)
from elmo_scratch.search import KeptSearch, holds_search, read_search

HEADLINES = ("perplexity", "accuracy", "macro_f1")
"""Metrics that experiments are also shown by, where all have them."""

Read = TypeVar("Read")


class Contents(NamedTuple):
    """
    # Parameters

    runs : `Sequence[Run]`
        Trainings.
    studies : `Sequence[Study]`, optional (default = none)
        Result files of studies.
    searches : `Sequence[KeptSearch]`, optional (default = none)
        Of which `runs` has the trainings that are left.
    layer_files : `Sequence[DescribedLayers]`, optional (default = none)
        Files that `allennlp elmo` wrote.
    left_out : `Sequence[str]`, optional (default = none)
        Why others that were asked for are not among them, a line each.
    """

    runs: Sequence[Run]
    studies: Sequence[Study] = ()
    searches: Sequence[KeptSearch] = ()
    layer_files: Sequence[DescribedLayers] = ()
    left_out: Sequence[str] = ()


def read_contents(paths: Sequence[Path]) -> Contents:
    """
    # Parameters

    paths : `Sequence[Path]`
        Each is the output folder of a training; a folder of such folders, which may be that of a
        search, or have the result file of a study too; such a file; or a file of layers.

    # Returns

    `Contents`
        What is there, in this order. What can't be read within folders is left out.

    # Raises

    ConfigurationError
        If one of them is something else, or nothing can be read.
    """
    runs: List[Run] = []
    studies: List[Study] = []
    searches: List[KeptSearch] = []
    layer_files: List[DescribedLayers] = []
    left_out: List[str] = []
    for path in paths:
        if path.is_file():
            if is_hdf5(path):
                layer_files.append(describe_layers(path))
            else:
                studies.append(_read_study(path))
            continue
        results = find_results(path)
        studies += _readable(results, read_results, left_out)
        found = [path] if holds_search(path) else []
        searches += _readable(found, read_search, left_out)
        try:
            folders = find_runs(path)
        except ConfigurationError:
            if not results and not found:
                raise
            folders = []
        runs += _readable(folders, read_run, left_out)
    if not (runs or studies or searches or layer_files):
        raise ConfigurationError(left_out[0])
    return Contents(runs, studies, searches, layer_files, left_out)


def _read_study(path: Path) -> Study:
    if path.suffix != ".json":
        raise ConfigurationError(
            f"{path}: expected the output folder of a training, the result file of a study (.json) "
            "or an HDF5 file of layers, but it is another file"
        )
    return read_results(path)


def _readable(
    paths: Sequence[Path], read: Callable[[Path], Read], left_out: List[str]
) -> List[Read]:
    found = []
    for path in paths:
        try:
            found.append(read(path))
        except ConfigurationError as error:
            left_out.append(str(error.message))
    return found


def report_of(contents: Contents, errors: Optional[Mapping[Path, Errors]] = None) -> Report:
    """
    # Parameters

    contents : `Contents`
        At least one thing.
    errors : `Mapping[Path, Errors]`, optional
        Of those runs that have been asked for them, by their folders.

    # Returns

    `Report`
        The same for the same content of the files.
    """
    runs, studies, searches, layer_files, left_out = contents
    names = run_names([run.folder for run in runs]) if runs else []
    study_names = _folder_names([study.path.parent for study in studies])
    search_names = _folder_names([search.folder for search in searches])
    titles = [f"Training {name}" for name in names] + [f"Study {name}" for name in study_names]
    titles += [f"Search {name}" for name in search_names]
    layer_names = run_names([one.path for one in layer_files]) if layer_files else []
    titles += [f"Layers {name}" for name in layer_names]
    sections = []
    if len(runs) > 1 or left_out:
        notes = [Paragraph(f"Left out: {printable(reason, 1000)}") for reason in left_out]
        sections.append(Section("Overview", [*([_overview(runs, names)] if runs else []), *notes]))
    of_searches = [search_section(search, name) for search, name in zip(searches, search_names)]
    sections += of_searches
    for study, name in zip(studies, study_names):
        sections += study_sections(study, name)
    for comparison in compared(runs, names):
        place = _repeated_search(comparison, searches)
        if place is not None:
            of_searches[place].blocks.extend(_courses(comparison))
            continue
        heading = f"Comparison by {comparison.measure.name}"
        sections.append(Section(heading, _comparison(comparison)))
    for described, name in zip(layer_files, layer_names):
        sections.append(layers_section(described, name))
    sections += [
        training_section(run, name, (errors or {}).get(run.folder))
        for run, name in zip(runs, names)
    ]
    return Report(titles[0] if len(titles) == 1 else in_numbers(contents), sections)


def in_numbers(contents: Contents) -> str:
    """What there is, counted, for readers."""
    counts = {
        "training": len(contents.runs),
        "study": len(contents.studies),
        "search": len(contents.searches),
        "file of layers": len(contents.layer_files),
    }
    plurals = {"study": "studies", "search": "searches", "file of layers": "files of layers"}
    return ", ".join(
        f"{count} {kind if count == 1 else plurals.get(kind, f'{kind}s')}"
        for kind, count in counts.items()
        if count
    )


def _folder_names(folders: Sequence[Path]) -> List[str]:
    """The last part of each folder's path, where that tells it from the others."""
    names = [Path(os.path.abspath(folder)).name for folder in folders]
    return [
        printable(name if name and names.count(name) == 1 else str(folder))
        for name, folder in zip(names, folders)
    ]


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


def _repeated_search(comparison: Comparison, searches: Sequence[KeptSearch]) -> Optional[int]:
    """
    The place of the search whose trials alone are compared, each an experiment of its own: the
    search's own table and pictures show that already. `None` for other comparisons.
    """
    experiments = [*comparison.experiments, *comparison.unjudged]
    parents = {os.path.abspath(run.folder.parent) for one in experiments for run in one.runs}
    if any(len(one.runs) > 1 for one in experiments):
        return None
    places = [
        place for place, one in enumerate(searches) if {os.path.abspath(one.folder)} == parents
    ]
    return places[0] if places else None


def _comparison(comparison: Comparison) -> List[Block]:
    metric, experiments = comparison.measure.name, comparison.experiments
    found: List[Block] = []
    if experiments:
        found += [Paragraph(comparison.in_words()), _table(comparison)]
        groups = [(one.name, one.values(metric)) for one in experiments]
        found.append(best_dots(metric, groups))
    found += _courses(comparison)
    if comparison.unjudged:
        names = ", ".join(one.name for one in comparison.unjudged)
        found.append(Paragraph(f"Without a finished training that measures {metric}: {names}."))
    return found


def _courses(comparison: Comparison) -> List[Block]:
    """Curves of all trainings, where one has two epochs."""
    metric = comparison.measure.name
    series = _series([*comparison.experiments, *comparison.unjudged], f"validation_{metric}")
    if not any(len(one.points) > 1 for one in series):
        return []
    caption = f"Course of {metric} on the validation data in all trainings, finished or not."
    return [curves(caption, metric, series)]


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
                difference_cell(metric, mean - best),
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
