"""
What a frozen biLM made of texts, kept for the epochs to come: each text passes it once a training.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import names_on_demand

if TYPE_CHECKING:
    from elmo_scratch.embedders.layer_cache.cache import KeptLayers as KeptLayers
    from elmo_scratch.embedders.layer_cache.file_store import FileStore as FileStore
    from elmo_scratch.embedders.layer_cache.layer_store import LayerStore as LayerStore
    from elmo_scratch.embedders.layer_cache.memory_store import MemoryStore as MemoryStore
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "FileStore": "file_store",
            "KeptLayers": "cache",
            "LayerStore": "layer_store",
            "MemoryStore": "memory_store",
        },
    )

__all__ = ["FileStore", "KeptLayers", "LayerStore", "MemoryStore"]
