"""HDF5 files of the layers of sentences: written whole or not at all, joined, and read back."""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.interop.layer_files.facts import LayerFileFacts as LayerFileFacts
    from elmo_scratch.interop.layer_files.reader import LayerFile as LayerFile
    from elmo_scratch.interop.layer_files.writer import LayerFileWriter as LayerFileWriter
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "LayerFile": "reader",
            "LayerFileFacts": "facts",
            "LayerFileWriter": "writer",
        },
    )

__all__ = ["LayerFile", "LayerFileFacts", "LayerFileWriter"]
