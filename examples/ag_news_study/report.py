"""The study's report, as a page and as a PDF."""

from pathlib import Path
from typing import Dict, List, Sequence

from results import Row

from elmo_scratch.report import read_contents, report_of, surest_errors, write_page, write_pdf
from elmo_scratch.search.tasks import Task


def shown_runs(rows: Sequence[Row], tasks: Sequence[Task]) -> List[Task]:
    """
    # Parameters

    rows : `Sequence[Row]`
        Those of the study's tables.
    tasks : `Sequence[Task]`
        All that the study plans.

    # Returns

    `List[Task]`
        The trainings that a report shows one by one: all biLMs, and those of each part's best row
        that was trained in this folder.
    """
    done = [task for task in tasks if task.is_training and task.is_done]
    here = {(task.part, task.row) for task in done}
    best: Dict[str, Row] = {}
    for row in rows:
        so_far = best.get(row.part, row)
        if (row.part, row.name) in here and row.mean("accuracy") >= so_far.mean("accuracy"):
            best[row.part] = row
    return [task for task in done if not task.row or task.row == best[task.part].name]


def write_reports(
    rows: Sequence[Row], tasks: Sequence[Task], folder: Path, dev: Path
) -> List[Path]:
    """
    Writes `report.html` and `report.pdf` into a study's folder: its tables, and what `shown_runs`
    tells, with the errors on dev of the first training of each part's best row.

    # Returns

    `List[Path]`
        Both files.
    """
    shown = shown_runs(rows, tasks)
    first = {task.part: task.folder / "run" for task in reversed(shown) if task.row}
    errors = {run: surest_errors(run, str(dev)) for run in first.values()}
    contents = read_contents([folder / "study.json", *(task.folder / "run" for task in shown)])
    report = report_of(contents, errors)
    page, pdf = folder / "report.html", folder / "report.pdf"
    write_page(report, page)
    write_pdf(report, pdf)
    return [page, pdf]
