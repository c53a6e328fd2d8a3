"""Sentences of words as the ids that a biLM reads, by its archive, its characters or its reader."""

from abc import ABC, abstractmethod
from itertools import chain
from typing import Dict, List, NamedTuple, Optional, Sequence

import torch
from allennlp.data import Batch, DatasetReader, Token, Vocabulary

from elmo_scratch.data.character_indexer import CharacterIndexer
from elmo_scratch.data.sentences_reader import SentencesReader
from elmo_scratch.data.spelling import check_sentences, spelled_words
from elmo_scratch.interop.archives.archive import PretrainedBiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder
from elmo_scratch.modules.token_encoders.token_ids import token_ids


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


class ReaderWordIndexer(WordIndexer):
    """
    Spells with the indexers of a dataset reader, of any kind. What the reader does to a text
    besides, its tokenizer above all, plays no part: words come split.

    # Parameters

    reader : `DatasetReader`
        The reader of a language model, with `text_to_instance` from a list of tokens to a field
        "sentence".
    vocab : `Vocabulary`
        What the reader's indexers use.
    encoder : `TokenEncoder`
        Tells which of the indexers' ids it reads.
    """

    def __init__(self, reader: DatasetReader, vocab: Vocabulary, encoder: TokenEncoder) -> None:
        self._reader = reader
        self._vocab = vocab
        self._encoder = encoder

    def spell(self, sentences: Sentences) -> IndexedBatch:
        """As `WordIndexer.spell`."""
        check_sentences(sentences)
        lengths = [len(sentence) for sentence in sentences]
        return IndexedBatch.of(self._ids_of(sentences), lengths)

    def _ids_of(self, sentences: Sentences) -> torch.Tensor:
        """Shape `(batch, tokens)` or `(batch, tokens, characters)`."""
        if not any(len(sentence) for sentence in sentences):
            # AllenNLP makes no batch of nothing.
            return torch.zeros(len(sentences), 0, dtype=torch.long, device="cpu")
        instances = [
            self._reader.text_to_instance([Token(word) for word in sentence])
            for sentence in sentences
        ]
        for instance in instances:
            self._reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self._vocab)
        text: Dict[str, Dict[str, torch.Tensor]] = batch.as_tensor_dict()["sentence"]  # type: ignore[assignment]
        return token_ids(text, self._encoder)


def archive_word_indexer(pretrained: PretrainedBiLm) -> WordIndexer:
    """
    # Parameters

    pretrained : `PretrainedBiLm`
        A biLM and the reader that it was trained with.

    # Returns

    `WordIndexer`
        The reader's indexers; or, many times faster, what makes the same ids without them.
    """
    encoder, reader = pretrained.bilm.token_encoder, pretrained.reader
    if isinstance(encoder, CharCnnEncoder) and isinstance(reader, SentencesReader):
        makers = [
            indexer
            for indexer in reader.token_indexers.values()
            if "elmo_tokens" in indexer.get_empty_token_list()
        ]
        if len(makers) == 1 and isinstance(makers[0], CharacterIndexer):
            max_characters = makers[0].max_characters_per_token
            # Otherwise the error of the slower way says what doesn't fit.
            if max_characters == encoder.max_characters_per_token:
                return CharacterWordIndexer(max_characters)
    return ReaderWordIndexer(reader, pretrained.vocab, encoder)
