"""
The official files of a biLM, `options.json` and `weights.hdf5`, as the original implementation
(`bilm-tf`) dumps them and AllenNLP's `Elmo` reads them.
"""

from elmo_scratch.interop.official.export import export_bilm as export_bilm
from elmo_scratch.interop.official.reading import build_bilm as build_bilm
from elmo_scratch.interop.official.reading import read_official_bilm as read_official_bilm
from elmo_scratch.interop.official.reading import read_official_options as read_official_options
from elmo_scratch.interop.official.writing import write_official_bilm as write_official_bilm

__all__ = [
    "build_bilm",
    "export_bilm",
    "read_official_bilm",
    "read_official_options",
    "write_official_bilm",
]
