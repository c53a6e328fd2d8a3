"""
Reads and writes other programs' files: trained archives, official weights, exported layers. This
room imports `modules`; `modules` knows nothing of files.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.interop.archives.archive import PretrainedBiLm as PretrainedBiLm
    from elmo_scratch.interop.archives.archive import read_bilm_archive as read_bilm_archive
    from elmo_scratch.interop.archives.blueprint import BiLmBlueprint as BiLmBlueprint
    from elmo_scratch.interop.archives.blueprint import WordList as WordList
    from elmo_scratch.interop.export import export_bilm as export_bilm
    from elmo_scratch.interop.export import export_model_folder as export_model_folder
    from elmo_scratch.interop.folders import write_bilm_folder as write_bilm_folder
    from elmo_scratch.interop.layer_files import LayerFile as LayerFile
    from elmo_scratch.interop.layer_files import LayerFileFacts as LayerFileFacts
    from elmo_scratch.interop.layer_files import LayerFileWriter as LayerFileWriter
    from elmo_scratch.interop.official import read_official_bilm as read_official_bilm
    from elmo_scratch.interop.official import write_official_bilm as write_official_bilm
    from elmo_scratch.interop.reading import LoadedBiLm as LoadedBiLm
    from elmo_scratch.interop.reading import read_bilm as read_bilm
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "BiLmBlueprint": "archives.blueprint",
            "LayerFile": "layer_files",
            "LayerFileFacts": "layer_files",
            "LayerFileWriter": "layer_files",
            "LoadedBiLm": "reading",
            "PretrainedBiLm": "archives.archive",
            "WordList": "archives.blueprint",
            "export_bilm": "export",
            "export_model_folder": "export",
            "read_bilm": "reading",
            "read_bilm_archive": "archives.archive",
            "read_official_bilm": "official",
            "write_bilm_folder": "folders",
            "write_official_bilm": "official",
        },
    )

__all__ = [
    "BiLmBlueprint",
    "LayerFile",
    "LayerFileFacts",
    "LayerFileWriter",
    "LoadedBiLm",
    "PretrainedBiLm",
    "WordList",
    "export_bilm",
    "export_model_folder",
    "read_bilm",
    "read_bilm_archive",
    "read_official_bilm",
    "write_bilm_folder",
    "write_official_bilm",
]
