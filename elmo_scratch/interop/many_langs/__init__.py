"""
The model folders of ELMoForManyLangs, which knows words and Unicode characters where the official
files know bytes.
"""

from elmo_scratch.interop.many_langs.model import (
    DictionaryWordIndexer as DictionaryWordIndexer,
)
from elmo_scratch.interop.many_langs.model import ManyLangsBlueprint as ManyLangsBlueprint
from elmo_scratch.interop.many_langs.model import ManyLangsModel as ManyLangsModel
from elmo_scratch.interop.many_langs.model import is_many_langs_folder as is_many_langs_folder
from elmo_scratch.interop.many_langs.model import many_langs_files as many_langs_files
from elmo_scratch.interop.many_langs.model import read_many_langs as read_many_langs

__all__ = [
    "DictionaryWordIndexer",
    "ManyLangsBlueprint",
    "ManyLangsModel",
    "is_many_langs_folder",
    "many_langs_files",
    "read_many_langs",
]
