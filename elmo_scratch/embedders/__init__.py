"""ELMo as a token embedder, at the output of a model's encoder, and for sentences in Python."""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.embedders.bilm_embedder import BiLmEmbedder as BiLmEmbedder
    from elmo_scratch.embedders.elmo import Elmo as Elmo
    from elmo_scratch.embedders.layer_file import LayerFileEmbedder as LayerFileEmbedder
    from elmo_scratch.embedders.layer_file import LayerFileIndexer as LayerFileIndexer
    from elmo_scratch.embedders.output_encoder import OutputEncoder as OutputEncoder
    from elmo_scratch.embedders.published_embedders import ManyLangsEmbedder as ManyLangsEmbedder
    from elmo_scratch.embedders.published_embedders import OfficialEmbedder as OfficialEmbedder
    from elmo_scratch.embedders.sentence_layers import SentenceLayers as SentenceLayers
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "BiLmEmbedder": "bilm_embedder",
            "Elmo": "elmo",
            "LayerFileEmbedder": "layer_file",
            "LayerFileIndexer": "layer_file",
            "ManyLangsEmbedder": "published_embedders",
            "OfficialEmbedder": "published_embedders",
            "OutputEncoder": "output_encoder",
            "SentenceLayers": "sentence_layers",
        },
    )

__all__ = [
    "BiLmEmbedder",
    "Elmo",
    "LayerFileEmbedder",
    "LayerFileIndexer",
    "ManyLangsEmbedder",
    "OfficialEmbedder",
    "OutputEncoder",
    "SentenceLayers",
]
