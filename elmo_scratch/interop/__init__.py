"""
The outside world's files: trained archives, exported layers. This room knows the modules; the
modules have never heard of files.
"""

from elmo_scratch.interop.bilm_archive import PretrainedBiLm as PretrainedBiLm
from elmo_scratch.interop.bilm_archive import read_bilm_archive as read_bilm_archive
from elmo_scratch.interop.bilm_blueprint import BiLmBlueprint as BiLmBlueprint
from elmo_scratch.interop.layer_file import LayerFileWriter as LayerFileWriter
from elmo_scratch.interop.official import export_bilm as export_bilm
from elmo_scratch.interop.official import read_official_bilm as read_official_bilm
from elmo_scratch.interop.official import write_official_bilm as write_official_bilm
from elmo_scratch.interop.word_list import WordList as WordList

__all__ = [
    "BiLmBlueprint",
    "LayerFileWriter",
    "PretrainedBiLm",
    "WordList",
    "export_bilm",
    "read_bilm_archive",
    "read_official_bilm",
    "write_official_bilm",
]
