"""What a command tells a person: sparklines, and the results of a run as a few lines."""

from elmo_scratch.terminal.results import Course as Course
from elmo_scratch.terminal.results import course_of_training as course_of_training
from elmo_scratch.terminal.results import result_lines as result_lines
from elmo_scratch.terminal.sparkline import sparkline as sparkline

__all__ = ["Course", "course_of_training", "result_lines", "sparkline"]
