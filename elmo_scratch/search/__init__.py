"""
One config, trained again and again with other values of some of its settings, to find the best.

The room promises that what has been trained is never trained again, wherever a search was stopped.
"""

from elmo_scratch.search.search import Search as Search
from elmo_scratch.search.study import KeptSearch as KeptSearch
from elmo_scratch.search.study import holds_search as holds_search
from elmo_scratch.search.study import read_search as read_search
from elmo_scratch.search.study import table as table
from elmo_scratch.search.study import write_best as write_best
from elmo_scratch.search.sweep import Sweep as Sweep
from elmo_scratch.search.sweep import read_sweep as read_sweep
from elmo_scratch.search.tasks import interrupted_by_signals as interrupted_by_signals

__all__ = [
    "KeptSearch",
    "Search",
    "Sweep",
    "holds_search",
    "interrupted_by_signals",
    "read_search",
    "read_sweep",
    "table",
    "write_best",
]
