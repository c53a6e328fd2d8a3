"""
Prepares text of any size once, and then reads it from disk as numbers.

The room promises that a corpus is prepared from shards that were checked line by line, that every
process with the same text and settings finds the same prepared folder, and that such a folder is
whole or not there.
"""

from elmo_scratch.data.corpus.preparation import ARCHIVED_AUDIT as ARCHIVED_AUDIT
from elmo_scratch.data.corpus.preparation import CorpusAudit as CorpusAudit
from elmo_scratch.data.corpus.preparation import WordTable as WordTable
from elmo_scratch.data.corpus.preparation import log_audit as log_audit
from elmo_scratch.data.corpus.prepared_corpus import PreparedCorpus as PreparedCorpus
from elmo_scratch.data.corpus.shards import DataPath as DataPath
from elmo_scratch.data.corpus.shards import check_no_table as check_no_table
from elmo_scratch.data.corpus.shards import check_not_empty as check_not_empty
from elmo_scratch.data.corpus.shards import data_set_lines as data_set_lines
from elmo_scratch.data.corpus.shards import is_data_set as is_data_set
from elmo_scratch.data.corpus.shards import is_table as is_table
from elmo_scratch.data.corpus.shards import list_shards as list_shards
from elmo_scratch.data.corpus.shards import named_paths as named_paths

__all__ = [
    "ARCHIVED_AUDIT",
    "CorpusAudit",
    "DataPath",
    "PreparedCorpus",
    "WordTable",
    "check_no_table",
    "check_not_empty",
    "data_set_lines",
    "is_data_set",
    "is_table",
    "list_shards",
    "log_audit",
    "named_paths",
]
