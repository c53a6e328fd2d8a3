"""What every way of spelling promises."""

from abc import ABC, abstractmethod
from typing import List, Sequence

import torch

from elmo_scratch.embedders.sentence_layers.spelled_batch import SpelledBatch

Sentences = Sequence[Sequence[str]]


class Speller(ABC):
    """Turns words into the ids that a biLM reads. Abstract."""

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
        ids = self.ids_of(sentences)
        lengths: List[int] = [len(sentence) for sentence in sentences]
        return SpelledBatch.of(ids, lengths)

    @abstractmethod
    def ids_of(self, sentences: Sentences) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, characters)` or `(batch, tokens)`, `tokens` being the length of
            the longest sentence or more.

        # Raises

        ValueError, ConfigurationError
            As `spell` does.
        """
