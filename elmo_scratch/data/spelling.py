"""Turns sentences of words into batches of ids, and spells each word once."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import (
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    TypeGuard,
    Union,
)

import numpy
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of

from elmo_scratch.alphabet import CHARACTERS_PER_TOKEN, MAX_CHARACTERS_PER_TOKEN, character_ids

WORDS_REMEMBERED = 2**16
"""Cached words, at some 250 bytes each."""


def check_max_characters(max_characters: int) -> None:
    """
    Raises `ConfigurationError` unless the ids of a word, marks and padding included, are as many as
    `CHARACTERS_PER_TOKEN` allows.
    """
    if max_characters not in CHARACTERS_PER_TOKEN:
        raise ConfigurationError(
            f"expected `max_characters_per_token` from {CHARACTERS_PER_TOKEN[0]} to "
            f"{CHARACTERS_PER_TOKEN[-1]}, but got {max_characters}"
        )


@lru_cache(maxsize=WORDS_REMEMBERED)
def spelled_word(word: str, max_characters: int) -> numpy.ndarray:
    """The ids of `character_ids` as a read-only array of shape `(max_characters,)`, int16."""
    spelled = numpy.array(character_ids(word, max_characters), dtype=numpy.int16)
    spelled.setflags(write=False)
    return spelled


def spelled_words(words: Iterable[str], max_characters: int) -> numpy.ndarray:
    """Spells any words as a read-only array of shape `(words, max_characters)`, int16."""
    rows = b"".join([spelled_word(word, max_characters) for word in words])  # type: ignore[misc]
    return numpy.frombuffer(rows, dtype=numpy.int16).reshape(-1, max_characters)


class TextToken(Protocol):
    """A token that knows its text, such as those of AllenNLP and spaCy."""

    @property
    def text(self) -> Optional[str]:
        """The word."""


Word = Union[str, TextToken]
Sentences = Sequence[Sequence[Word]]


NO_SENTENCES = (str, bytes, Mapping, Set)
"""Collections whose members are no words, or have no order."""


def are_words(value: object) -> bool:
    """
    Whether a value is an ordered collection of words: a list or a tuple, but also a NumPy array or
    a pandas series.
    """
    return _is_ordered(value) and all(isinstance(word, str) for word in value)


def _is_ordered(value: object) -> TypeGuard[Collection]:
    if not isinstance(value, Collection) or isinstance(value, NO_SENTENCES):
        return False
    # A table iterates over column names; an array without an axis can't be iterated at all.
    return getattr(value, "ndim", 1) == 1


def words_of(sentences: Iterable[Sequence[object]], first: int = 0) -> List[Sequence[str]]:
    """
    The words of each sentence, given as strings or tokens. Raises `ValueError` if a sentence is not
    a sequence of words. A plain text is the likely mistake: its letters would pass for words.
    `first` is the number of the first sentence, for the error.
    """
    found: List[Sequence[str]] = []
    for number, sentence in enumerate(sentences, first):
        words: object = sentence
        if not are_words(words):
            if _is_ordered(words):
                words = [getattr(word, "text", word) for word in words]
            if not are_words(words):
                raise ValueError(
                    f"expected sentence {number} to be a sequence of words, but got {words!r}"
                )
        found.append(words)  # type: ignore[arg-type]
    return found


def batch_to_ids(
    batch: Iterable[Sequence[Word]], max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN
) -> torch.Tensor:
    """
    Spells the words of sentences as ids of characters.

    # Parameters

    batch : `Iterable[Sequence[Word]]`
        The words of each sentence, as strings or tokens.
    max_characters_per_token : `int`, optional (default = `50`, the released models' value)
        Ids of a word, marks and padding included.

    # Returns

    `torch.Tensor`
        Shape `(batch, tokens, characters)`, 0 where a sentence has ended.

    # Raises

    ValueError
        If a sentence is not a sequence of words.
    ConfigurationError
        If a word has no room for a sentence mark between two word marks, or more than 4,096 ids.
    """
    sentences = words_of(batch)
    check_max_characters(max_characters_per_token)
    lengths = [len(sentence) for sentence in sentences]
    shape = (len(lengths), max(lengths, default=0), max_characters_per_token)
    ids = numpy.zeros(shape, numpy.int64)
    spelled = spelled_words(chain.from_iterable(sentences), max_characters_per_token)
    start = 0
    for row, length in zip(ids, lengths):
        row[:length] = spelled[start : start + length]
        start += length
    return torch.from_numpy(ids)


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


class WordIndexer(ABC):
    """Turns words into the ids that a biLM reads. Abstract."""

    @abstractmethod
    def spell(self, sentences: Sentences) -> IndexedBatch:
        """
        Makes ids of the words of each sentence. Raises `ValueError` if a sentence is not a sequence
        of words, `ConfigurationError` if the ids don't suit the biLM.
        """


class SpellingWordIndexer(WordIndexer):
    """Makes a row of ids for each word, for a `SpelledWordEncoder`. Abstract."""

    @abstractmethod
    def spelled(self, words: Collection[str]) -> torch.Tensor:
        """The ids of each word, shape `(words, ids)`."""

    def spell(self, sentences: Sentences) -> IndexedBatch:
        """
        Makes the ids of each distinct word once: words repeat in texts, and a biLM would otherwise
        have to compare the characters of all of them.
        """
        words = words_of(sentences)
        lengths = [len(sentence) for sentence in words]
        places = {word: place for place, word in enumerate(dict.fromkeys(chain(*words)))}
        ids = torch.zeros(len(lengths), max(lengths, default=0), dtype=torch.long, device="cpu")
        batch = IndexedBatch.of(ids, lengths, self.spelled(places))
        there = [places[word] for word in chain(*words)]
        ids[batch.mask] = torch.tensor(there, dtype=torch.long, device="cpu")
        return batch


@dataclass(frozen=True)
class CharacterWordIndexer(SpellingWordIndexer):
    """
    Makes ids for biLMs of characters, which know every word: `max_characters_per_token` ids for
    each word, marks and padding included.
    """

    max_characters_per_token: int

    def spelled(self, words: Collection[str]) -> torch.Tensor:
        return torch.tensor(spelled_words(words, self.max_characters_per_token))


MAX_POSITIONS_LAID = 2**16
"""
How many positions a batch of layers may have, padding included, unless one sentence has more. With
the released original model they take 800 MB.
"""

WARM_UP_AT_ONCE = 64
"""How many sentences' words are encoded together during a warm-up."""


def split_ragged_batch(lengths: Sequence[int]) -> Iterator[slice]:
    """
    Splits a batch in which one long sentence would pad all others out of proportion, given the
    number of tokens of each sentence. Yields slices in order, each of at least one sentence and of
    no more positions than `MAX_POSITIONS_LAID` otherwise.
    """
    first = longest = 0
    for row, length in enumerate(lengths):
        longest = max(longest, length)
        # Each sentence has two marks.
        if row > first and (row + 1 - first) * (longest + 2) > MAX_POSITIONS_LAID:
            yield slice(first, row)
            first, longest = row, length
    if first < len(lengths):
        yield slice(first, len(lengths))


def warm_up_batches(sentences: Iterable[Sequence[Word]]) -> Iterator[List[List[str]]]:
    """
    Yields the sentences of a text to warm up with, `WARM_UP_AT_ONCE` at a time, or fewer where one
    is very long. Raises `ValueError` as `words_of` does.
    """
    for number, group in enumerate(lazy_groups_of(sentences, WARM_UP_AT_ONCE)):
        words = [list(sentence) for sentence in words_of(group, number * WARM_UP_AT_ONCE)]
        for rows in split_ragged_batch(list(map(len, words))):
            yield words[rows]
