"""
A cache of a frozen biLM's layers: the biLM reads each text once a training, not once an epoch.
"""

from typing import TYPE_CHECKING

from elmo_scratch.files.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from elmo_scratch.embedders.layer_cache.cache import KeptLayers as KeptLayers
    from elmo_scratch.embedders.layer_cache.stores import FileStore as FileStore
    from elmo_scratch.embedders.layer_cache.stores import LayerStore as LayerStore
    from elmo_scratch.embedders.layer_cache.stores import MemoryStore as MemoryStore
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "FileStore": "stores",
            "KeptLayers": "cache",
            "LayerStore": "stores",
            "MemoryStore": "stores",
        },
    )

__all__ = ["FileStore", "KeptLayers", "LayerStore", "MemoryStore"]
