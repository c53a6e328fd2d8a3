"""Sentences of words as the ids that a biLM reads, and the ids of a biLM over characters."""

from abc import ABC, abstractmethod
from itertools import chain
from typing import List, NamedTuple, Optional, Sequence

import torch

from elmo_scratch.data.spelling import check_sentences, spelled_words


class IndexedBatch(NamedTuple):
    """
    Sentences in numbers.

    # Parameters

    ids : `torch.Tensor`
        Of shape `(batch, tokens)` the places of the words in `words`. Where there are none, what
        the token encoder reads, of shape `(batch, tokens)` or `(batch, tokens, characters)`. 0
        where a sentence has ended.
    mask : `torch.BoolTensor`
        Shape `(batch, tokens)`.
    lengths : `List[int]`
        How many tokens each sentence has.
    words : `torch.Tensor`, optional
        Shape `(words, characters)`: for a biLM of characters, each word once, however often it
        comes.
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
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens)` or `(batch, tokens, characters)`.
        lengths : `List[int]`
            How many tokens each sentence has.
        words : `torch.Tensor`, optional
            Shape `(words, characters)`, where `ids` are places in it.

        # Returns

        `IndexedBatch`
            As many tokens long as its longest sentence.
        """
        longest = max(lengths, default=0)
        ends = torch.tensor(lengths, dtype=torch.long, device="cpu").unsqueeze(1)
        mask = torch.arange(longest, device="cpu") < ends
        return cls(ids[:, :longest], mask, lengths, words)

    def rows(self, first: int, last: int) -> "IndexedBatch":
        """The sentences from number `first` up to, but without, `last`, and their words alone."""
        part = self.of(self.ids[first:last], self.lengths[first:last])
        if self.words is None:
            return part
        # Half of a batch that did not fit into memory shall have less to encode.
        come, places = part.ids[part.mask].unique(return_inverse=True)
        ids = torch.zeros_like(part.ids)
        ids[part.mask] = places
        return part._replace(ids=ids, words=self.words[come])

    def token_ids(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(batch, tokens)` or `(batch, tokens, characters)`: what the token encoder reads.
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
        # Parameters

        sentences : `Sequence[Sequence[str]]`
            The words of each sentence.

        # Raises

        ValueError
            If a sentence is not a sequence of words.
        ConfigurationError
            If what makes the ids doesn't go with the biLM.
        """


class CharacterWordIndexer(WordIndexer):
    """
    Spells for biLMs of characters, which know every word.

    # Parameters

    max_characters_per_token : `int`
        Ids of a word, marks and padding included.
    """

    def __init__(self, max_characters_per_token: int) -> None:
        self.max_characters_per_token = max_characters_per_token

    def spell(self, sentences: Sentences) -> IndexedBatch:
        """
        As `WordIndexer.spell`. Each word is spelled once: texts repeat theirs, and a biLM would go
        through all of their characters before it knows the distinct ones.
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
