"""What every place for layers promises."""

from abc import ABC, abstractmethod
from typing import Dict, Optional

import numpy
from allennlp.common import Registrable


class LayerStore(Registrable, ABC):
    """A place where layers are kept under a key. Abstract."""

    default_implementation = "memory"

    @abstractmethod
    def get(self, key: bytes) -> Optional[numpy.ndarray]:
        """
        # Returns

        `Optional[numpy.ndarray]`
            Float32, shape `(n,)`: what was put there, flat, not to be written to; `None` where
            nothing was.
        """

    @abstractmethod
    def put(self, kept: Dict[bytes, numpy.ndarray]) -> None:
        """
        # Parameters

        kept : `Dict[bytes, numpy.ndarray]`
            Float32, of any shape, by key. What there is no room for is not kept.

        # Raises

        ConfigurationError
            If they can't be written.
        """
