"""
The official files of a biLM, `options.json` and `weights.hdf5`, as the original implementation
(`bilm-tf`) dumps them and AllenNLP's `Elmo` reads them.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.interop.official.files import RELEASED_OPTIONS as RELEASED_OPTIONS
    from elmo_scratch.interop.official.files import RELEASED_WEIGHTS as RELEASED_WEIGHTS
    from elmo_scratch.interop.official.files import read_official_bilm as read_official_bilm
    from elmo_scratch.interop.official.files import read_official_options as read_official_options
    from elmo_scratch.interop.official.files import write_official_bilm as write_official_bilm
    from elmo_scratch.interop.official.options import build_bilm as build_bilm
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "RELEASED_OPTIONS": "files",
            "RELEASED_WEIGHTS": "files",
            "build_bilm": "options",
            "read_official_bilm": "files",
            "read_official_options": "files",
            "write_official_bilm": "files",
        },
    )

__all__ = [
    "RELEASED_OPTIONS",
    "RELEASED_WEIGHTS",
    "build_bilm",
    "read_official_bilm",
    "read_official_options",
    "write_official_bilm",
]
