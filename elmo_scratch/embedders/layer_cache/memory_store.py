"""Layers kept in memory."""

import logging
from typing import Dict, Optional, Tuple

import numpy
from allennlp.common.checks import ConfigurationError

from elmo_scratch.embedders.layer_cache.layer_store import LayerStore
from elmo_scratch.files.machine import free_memory, machine_memory

logger = logging.getLogger(__name__)

RESERVE = 0.1
"""The share of the machine's memory that stays free, whatever other processes keep."""


@LayerStore.register("memory")
class MemoryStore(LayerStore):
    """
    Keeps layers in memory until it has had its share of it, or there is hardly any left; it says
    so, and keeps no more.

    Registered as a `LayerStore` with name "memory".

    # Parameters

    share : `float`, optional (default = `0.5`)
        How much of the machine's memory they may take, above 0 and at most 1.

    # Raises

    ConfigurationError
        If `share` is no such number.
    """

    def __init__(self, share: float = 0.5) -> None:
        if not 0.0 < share <= 1.0:
            raise ConfigurationError(f"expected a `share` above 0 and at most 1, but got {share}")
        self._share = share
        total = machine_memory()
        self._room, self._reserve = share * total, RESERVE * total
        self._kept: Dict[bytes, numpy.ndarray] = {}
        self._has_warned = False

    def __reduce__(self) -> Tuple[type, Tuple[float]]:
        """Copies and pickles start empty: what is kept may be half of the memory."""
        return type(self), (self._share,)

    def get(self, key: bytes) -> Optional[numpy.ndarray]:
        """As in `LayerStore`."""
        return self._kept.get(key)

    def put(self, kept: Dict[bytes, numpy.ndarray]) -> None:
        """As in `LayerStore`."""
        if free_memory() < self._reserve:
            self._say(
                "hardly any memory is left: texts pass the biLM in each epoch until there is more"
            )
            return
        for key, layers in kept.items():
            if layers.nbytes > self._room:
                self._say(
                    "there is no room for more: all other texts pass the biLM in each epoch, "
                    "unless they get a larger `share` of the memory"
                )
                continue
            self._room -= layers.nbytes
            self._kept[key] = layers.ravel()

    def _say(self, reason: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "The layers of %d texts are in memory, and %s. A file has room for all: "
                '`keep_layers: { type: "file", path: ... }`.',
                len(self._kept),
                reason,
            )
