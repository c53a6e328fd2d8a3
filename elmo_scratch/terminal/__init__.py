"""What a command tells a person: sparklines, results as a few lines, and how it closes."""

from elmo_scratch.terminal.checkpoints import last_checkpoint as last_checkpoint
from elmo_scratch.terminal.checkpoints import way_on as way_on
from elmo_scratch.terminal.closing import closing_lines as closing_lines
from elmo_scratch.terminal.closing import counted as counted
from elmo_scratch.terminal.closing import duration as duration
from elmo_scratch.terminal.columns import clipped as clipped
from elmo_scratch.terminal.columns import printable as printable
from elmo_scratch.terminal.columns import text_width as text_width
from elmo_scratch.terminal.results import Course as Course
from elmo_scratch.terminal.results import course_of_training as course_of_training
from elmo_scratch.terminal.results import result_lines as result_lines
from elmo_scratch.terminal.sparkline import sparkline as sparkline

__all__ = [
    "Course",
    "clipped",
    "closing_lines",
    "counted",
    "course_of_training",
    "duration",
    "last_checkpoint",
    "printable",
    "result_lines",
    "sparkline",
    "text_width",
    "way_on",
]
