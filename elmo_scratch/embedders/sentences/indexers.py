"""Sentences of words as the ids that a biLM reads."""

from abc import ABC, abstractmethod
from itertools import chain
from typing import List, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.data.spelling import check_sentences, spelled_words


class IndexedBatch(NamedTuple):
    """
    Sentences as ids, padded with 0. `mask` has the shape `(batch, tokens)`; `lengths` are the
    numbers of tokens.

    With `words`, of shape `(words, characters)`, each distinct word of a biLM of characters stands
    there once, and `ids`, of shape `(batch, tokens)`, are places in it. Without, `ids` are the
    input of the token encoder, shape `(batch, tokens)` or `(batch, tokens, characters)`.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    lengths: List[int]
    words: Optional[torch.Tensor] = None

    @classmethod
    def of(
        cls, ids: torch.Tensor, lengths: List[int], words: Optional[torch.Tensor] = None
    ) -> "IndexedBatch":
        """
        Makes a batch that is as long as its longest sentence, from ids of shape `(batch, tokens)`
        or `(batch, tokens, characters)`. With `words`, `ids` are places in it.
        """
        longest = max(lengths, default=0)
        ends = torch.tensor(lengths, dtype=torch.long, device="cpu").unsqueeze(1)
        mask = torch.arange(longest, device="cpu") < ends
        return cls(ids[:, :longest], mask, lengths, words)

    def rows(self, first: int, last: int) -> "IndexedBatch":
        """Returns the sentences from `first` up to, but without, `last`, and only their words."""
        part = self.of(self.ids[first:last], self.lengths[first:last])
        if self.words is None:
            return part
        # Half of a batch that did not fit into memory has fewer words to encode.
        come, places = part.ids[part.mask].unique(return_inverse=True)
        ids = torch.zeros_like(part.ids)
        ids[part.mask] = places
        return part._replace(ids=ids, words=self.words[come])

    def token_ids(self) -> torch.Tensor:
        """
        Returns the token encoder's input, shape `(batch, tokens)` or `(batch, tokens, characters)`.
        """
        if self.words is None:
            return self.ids
        spelled = self.words.new_zeros(*self.ids.shape, self.words.size(1))
        spelled[self.mask] = self.words[self.ids[self.mask]]
        return spelled


Sentences = Sequence[Sequence[str]]


class WordIndexer(ABC):
    """Turns words into the ids that a biLM reads. Abstract."""

    @abstractmethod
    def spell(self, sentences: Sentences) -> IndexedBatch:
        """
        Makes ids of the words of each sentence. Raises `ValueError` if a sentence is not a sequence
        of words, `ConfigurationError` if the ids don't suit the biLM.
        """


class CharacterWordIndexer(WordIndexer):
    """
    Makes ids for biLMs of characters, which know every word: `max_characters_per_token` ids for
    each word, marks and padding included.
    """

    def __init__(self, max_characters_per_token: int) -> None:
        self.max_characters_per_token = max_characters_per_token

    def spell(self, sentences: Sentences) -> IndexedBatch:
        """
        Makes the ids of each distinct word once: words repeat in texts, and a biLM would otherwise
        have to compare the characters of all of them.
        """
        check_sentences(sentences)
        lengths = [len(sentence) for sentence in sentences]
        places = {word: place for place, word in enumerate(dict.fromkeys(chain(*sentences)))}
        ids = torch.zeros(len(lengths), max(lengths, default=0), dtype=torch.long, device="cpu")
        words = torch.tensor(spelled_words(places, self.max_characters_per_token))
        batch = IndexedBatch.of(ids, lengths, words)
        there = [places[word] for word in chain(*sentences)]
        ids[batch.mask] = torch.tensor(there, dtype=torch.long, device="cpu")
        return batch
