"""
ELMo from scratch for AllenNLP: pre-train a bidirectional language model, mix its layers for a
task, and export per-layer vectors.

Importing the package costs next to nothing: a name is imported when it is first used, and all that
a config can name when AllenNLP first looks a name up.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports
from elmo_scratch.version import VERSION as VERSION

if TYPE_CHECKING:
    from elmo_scratch import commands as commands
    from elmo_scratch import data as data
    from elmo_scratch import embedders as embedders
    from elmo_scratch import explore as explore
    from elmo_scratch import export as export
    from elmo_scratch import integrations as integrations
    from elmo_scratch import interop as interop
    from elmo_scratch import metrics as metrics
    from elmo_scratch import models as models
    from elmo_scratch import modules as modules
    from elmo_scratch import predictors as predictors
    from elmo_scratch import scoring as scoring
    from elmo_scratch import search as search
    from elmo_scratch import static_vectors as static_vectors
    from elmo_scratch import training as training
    from elmo_scratch.data import batch_to_ids as batch_to_ids
    from elmo_scratch.embedders import BiLmEmbedder as BiLmEmbedder
    from elmo_scratch.embedders import Elmo as Elmo
    from elmo_scratch.embedders import OfficialEmbedder as OfficialEmbedder
    from elmo_scratch.embedders import SentenceLayers as SentenceLayers
    from elmo_scratch.explore import nearest as nearest
    from elmo_scratch.explore import nearest_by_layer as nearest_by_layer
    from elmo_scratch.export import ElmoEmbedder as ElmoEmbedder
    from elmo_scratch.integrations import ElmoVectorizer as ElmoVectorizer
    from elmo_scratch.interop import LayerFile as LayerFile
    from elmo_scratch.interop import LoadedBiLm as LoadedBiLm
    from elmo_scratch.interop import read_bilm as read_bilm
    from elmo_scratch.interop import read_bilm_archive as read_bilm_archive
    from elmo_scratch.interop import read_official_bilm as read_official_bilm
    from elmo_scratch.interop import write_bilm_folder as write_bilm_folder
    from elmo_scratch.interop import write_official_bilm as write_official_bilm
    from elmo_scratch.modules import BiLm as BiLm
    from elmo_scratch.modules import LayerMix as LayerMix
    from elmo_scratch.modules import OutputSoftmax as OutputSoftmax
    from elmo_scratch.modules import TokenEncoder as TokenEncoder
    from elmo_scratch.scoring import SentenceScorer as SentenceScorer
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "BiLm": "modules",
            "BiLmEmbedder": "embedders",
            "Elmo": "embedders",
            "ElmoEmbedder": "export",
            "ElmoVectorizer": "integrations",
            "LayerFile": "interop",
            "LayerMix": "modules",
            "LoadedBiLm": "interop",
            "OfficialEmbedder": "embedders",
            "OutputSoftmax": "modules",
            "SentenceLayers": "embedders",
            "SentenceScorer": "scoring",
            "TokenEncoder": "modules",
            "batch_to_ids": "data",
            "nearest": "explore",
            "nearest_by_layer": "explore",
            "read_bilm": "interop",
            "read_bilm_archive": "interop",
            "read_official_bilm": "interop",
            "write_bilm_folder": "interop",
            "write_official_bilm": "interop",
        },
    )

__all__ = [
    "BiLm",
    "BiLmEmbedder",
    "Elmo",
    "ElmoEmbedder",
    "ElmoVectorizer",
    "LayerFile",
    "LayerMix",
    "LoadedBiLm",
    "OfficialEmbedder",
    "OutputSoftmax",
    "SentenceLayers",
    "SentenceScorer",
    "TokenEncoder",
    "VERSION",
    "batch_to_ids",
    "nearest",
    "nearest_by_layer",
    "read_bilm",
    "read_bilm_archive",
    "read_official_bilm",
    "write_bilm_folder",
    "write_official_bilm",
]
