"""Words by their characters alone."""

import numpy
import torch

from elmo_scratch.data.character_batch import padded_ids
from elmo_scratch.embedders.sentence_layers.speller import Sentences, Speller


class CharacterSpeller(Speller):
    """
    Spells for biLMs of characters, which know every word.

    # Parameters

    max_characters_per_token : `int`
        Ids of a word, marks and padding included.
    """

    def __init__(self, max_characters_per_token: int) -> None:
        self.max_characters_per_token = max_characters_per_token

    def ids_of(self, sentences: Sentences) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, characters)`, of int16: most of it is padding, and a biLM goes
            through it several times before it knows the distinct words.

        # Raises

        ValueError
            If a sentence is not a sequence of words.
        """
        ids = padded_ids(sentences, self.max_characters_per_token, numpy.int16)
        return torch.from_numpy(ids)
