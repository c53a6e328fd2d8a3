"""
What trainings came to, to a report that people look at: a page or a PDF of the same content.

The room promises that nothing in a run's folder is trusted, whatever state the run is in, and that
the same runs give the same bytes. `surest_errors` alone loads a model, as `allennlp evaluate` does.
"""

from elmo_scratch.report.charts import check_matplotlib as check_matplotlib
from elmo_scratch.report.document import Report as Report
from elmo_scratch.report.errors import Errors as Errors
from elmo_scratch.report.errors import surest_errors as surest_errors
from elmo_scratch.report.overview import Contents as Contents
from elmo_scratch.report.overview import in_numbers as in_numbers
from elmo_scratch.report.overview import read_contents as read_contents
from elmo_scratch.report.overview import report_of as report_of
from elmo_scratch.report.page import write_page as write_page
from elmo_scratch.report.pdf import write_pdf as write_pdf
from elmo_scratch.report.results import Study as Study
from elmo_scratch.report.results import read_results as read_results
from elmo_scratch.report.run import Run as Run
from elmo_scratch.report.run import State as State
from elmo_scratch.report.run import find_runs as find_runs
from elmo_scratch.report.run import read_run as read_run

__all__ = [
    "Contents",
    "Errors",
    "Report",
    "Run",
    "State",
    "Study",
    "check_matplotlib",
    "find_runs",
    "in_numbers",
    "read_contents",
    "read_results",
    "read_run",
    "report_of",
    "surest_errors",
    "write_page",
    "write_pdf",
]
