"""The base class of methods that train static word vectors."""

from abc import ABC, abstractmethod

import numpy

from elmo_scratch.static_vectors.text import VectorText


class VectorMethod(ABC):
    """Learns one vector a word from the words that it stands beside. Abstract."""

    @abstractmethod
    def vectors_of(self, text: VectorText) -> numpy.ndarray:
        """
        # Parameters

        text : `VectorText`
            The text to learn from.

        # Returns

        `numpy.ndarray`
            Shape `(words, dim)`, of float32: a vector for each of `text.words`.

        # Raises

        ConfigurationError
            If the text is too small for the settings.
        """
