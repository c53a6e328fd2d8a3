"""The ids of words by their places in a list."""

from dataclasses import dataclass
from itertools import chain

import torch

from elmo_scratch.data.spelling import IndexedBatch, Sentences, WordIndexer, words_of
from elmo_scratch.interop.archives.blueprint import WordList


@dataclass(frozen=True)
class ListedWordIndexer(WordIndexer):
    """
    Makes ids for biLMs of words, as AllenNLP's indexer `single_id` does.

    # Parameters

    words : `WordList`
        The words that the biLM knows. It takes all others for the unknown word.
    lowercase : `bool`
        Whether a word is looked up in lower case.
    """

    words: WordList
    lowercase: bool

    def spell(self, sentences: Sentences) -> IndexedBatch:
        listed = words_of(sentences)
        lengths = [len(sentence) for sentence in listed]
        ids = torch.zeros(len(lengths), max(lengths, default=0), dtype=torch.long, device="cpu")
        batch = IndexedBatch.of(ids, lengths)
        words = chain.from_iterable(listed)
        places = [self.words.id_of(word.lower() if self.lowercase else word) for word in words]
        ids[batch.mask] = torch.tensor(places, dtype=torch.long, device="cpu")
        return batch
