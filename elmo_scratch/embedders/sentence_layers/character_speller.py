"""Words by their characters alone."""

import torch

from elmo_scratch.data.character_batch import batch_to_ids
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
            Shape `(batch, tokens, characters)`.

        # Raises

        ValueError
            If a sentence is not a sequence of words.
        """
        return batch_to_ids(sentences, self.max_characters_per_token)
