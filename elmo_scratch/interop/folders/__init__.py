"""
Model folders: a biLM as files without code, for sharing: `config.json`, `model.safetensors`,
`vocab.txt` where words are read or predicted, and a model card, `README.md`.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.interop.folders.reading import read_model_folder as read_model_folder
    from elmo_scratch.interop.folders.writing import write_bilm_folder as write_bilm_folder
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "read_model_folder": "reading",
            "write_bilm_folder": "writing",
        },
    )

__all__ = ["read_model_folder", "write_bilm_folder"]
