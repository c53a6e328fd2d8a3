"""ELMo from a file that holds a frozen biLM's layers of all texts: a task only mixes them."""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.embedders.layer_file.layer_file_embedder import (
        LayerFileEmbedder as LayerFileEmbedder,
    )
    from elmo_scratch.embedders.layer_file.layer_file_indexer import (
        LayerFileIndexer as LayerFileIndexer,
    )
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "LayerFileEmbedder": "layer_file_embedder",
            "LayerFileIndexer": "layer_file_indexer",
        },
    )

__all__ = ["LayerFileEmbedder", "LayerFileIndexer"]
