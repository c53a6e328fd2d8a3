"""What every way of spelling promises."""

from abc import ABC, abstractmethod
from typing import Sequence

from elmo_scratch.embedders.sentences.spelled_batch import SpelledBatch

Sentences = Sequence[Sequence[str]]


class Speller(ABC):
    """Turns words into the ids that a biLM reads. Abstract."""

    @abstractmethod
    def spell(self, sentences: Sentences) -> SpelledBatch:
        """
        # Parameters

        sentences : `Sequence[Sequence[str]]`
            The words of each sentence.

        # Raises

        ValueError
            If a sentence is not a sequence of words.
        ConfigurationError
            If what makes the ids doesn't go with the biLM.
        """
