"""Words by their characters alone."""

from itertools import chain

import torch

from elmo_scratch.data.spelling import check_sentences, spelled_words
from elmo_scratch.embedders.sentences.spelled_batch import SpelledBatch
from elmo_scratch.embedders.sentences.speller import Sentences, Speller


class CharacterSpeller(Speller):
    """
    Spells for biLMs of characters, which know every word.

    # Parameters

    max_characters_per_token : `int`
        Ids of a word, marks and padding included.
    """

    def __init__(self, max_characters_per_token: int) -> None:
        self.max_characters_per_token = max_characters_per_token

    def spell(self, sentences: Sentences) -> SpelledBatch:
        """
        As `Speller.spell`. Each word is spelled once: texts repeat theirs, and a biLM would go
        through all of their characters before it knows the distinct ones.
        """
        check_sentences(sentences)
        lengths = [len(sentence) for sentence in sentences]
        places = {word: place for place, word in enumerate(dict.fromkeys(chain(*sentences)))}
        ids = torch.zeros(len(lengths), max(lengths, default=0), dtype=torch.long, device="cpu")
        words = torch.tensor(spelled_words(places, self.max_characters_per_token))
        batch = SpelledBatch.of(ids, lengths, words)
        there = [places[word] for word in chain(*sentences)]
        ids[batch.mask] = torch.tensor(there, dtype=torch.long, device="cpu")
        return batch
