"""From a text to the ids that a language model reads and predicts."""

from abc import ABC, abstractmethod
from os import PathLike
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Union

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, DatasetReader, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.nn.util import get_text_field_mask

from elmo_scratch.data.lines import split_lines
from elmo_scratch.data.spelling import CharacterWordIndexer, IndexedBatch
from elmo_scratch.interop import WordList
from elmo_scratch.modules import TokenEncoder
from elmo_scratch.modules.token_encoders.token_ids import token_ids

Sentence = List[Token]


class IndexedSentences(NamedTuple):
    """
    Sentences as ids: `ids`, of shape `(batch, tokens)` or `(batch, tokens, characters)`, are read
    by the token encoder; `words`, of shape `(batch, tokens)`, are the words to predict; `mask` has
    the shape `(batch, tokens)`.
    """

    ids: torch.Tensor
    words: torch.Tensor
    mask: torch.Tensor


class SentenceIndexer(ABC):
    """Reads texts for a language model, and gives their words ids. Abstract."""

    @abstractmethod
    def sentences(self, text_file: Union[str, PathLike]) -> Iterator[Sentence]:
        """Yields the tokens of each sentence; raises `ConfigurationError` as its reader does."""

    @abstractmethod
    def index(self, sentences: Sequence[Sentence]) -> IndexedSentences:
        """Makes ids of sentences, none of which is empty."""


class ReaderIndexer(SentenceIndexer):
    """
    Reads and indexes by the dataset reader of a language model, as its evaluation does. The reader
    makes instances with a field "sentence", from a file and from a list of tokens. `vocab` is the
    vocabulary of its indexers; `encoder` tells which of their ids are read.
    """

    def __init__(self, reader: DatasetReader, vocab: Vocabulary, encoder: TokenEncoder) -> None:
        self._reader = reader
        self._vocab = vocab
        self._encoder = encoder

    def sentences(self, text_file: Union[str, PathLike]) -> Iterator[Sentence]:
        for instance in self._reader.read(text_file):
            field = instance.fields.get("sentence")
            if not isinstance(field, TextField):
                raise ConfigurationError(
                    f"expected a dataset reader that makes a text field `sentence`, but "
                    f"{type(self._reader).__name__} makes {sorted(instance.fields)}"
                )
            yield field.tokens

    def index(self, sentences: Sequence[Sentence]) -> IndexedSentences:
        instances = [self._reader.text_to_instance(sentence) for sentence in sentences]
        for instance in instances:
            self._reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self._vocab)
        text: Dict[str, Dict[str, torch.Tensor]] = batch.as_tensor_dict()["sentence"]  # type: ignore[assignment]
        by_name = {name: ids for tensors in text.values() for name, ids in tensors.items()}
        return IndexedSentences(
            token_ids(text, self._encoder), by_name["tokens"], get_text_field_mask(text)
        )


class ListIndexer(SentenceIndexer):
    """
    Reads one sentence a line, its tokens between white space, and indexes by a list of words, as
    official biLMs do. `max_characters` counts the ids of a word for a biLM of characters; one of
    words has `None`. With `lowercase` words are looked up in lower case.
    """

    def __init__(
        self, words: WordList, max_characters: Optional[int], lowercase: bool = False
    ) -> None:
        self._ids = {word: number for number, word in enumerate(words.words)}
        self._unknown_id = words.unknown_id
        self._lowercase = lowercase
        self._characters = None if max_characters is None else CharacterWordIndexer(max_characters)

    def sentences(self, text_file: Union[str, PathLike]) -> Iterator[Sentence]:
        for words in split_lines(text_file):
            yield [Token(word) for word in words]

    def index(self, sentences: Sequence[Sentence]) -> IndexedSentences:
        texts = [[token.text or "" for token in sentence] for sentence in sentences]
        lengths = [len(text) for text in texts]
        words = torch.zeros(len(texts), max(lengths), dtype=torch.long, device="cpu")
        for row, text in zip(words, texts):
            looked_up = [word.lower() for word in text] if self._lowercase else text
            ids = [self._ids.get(word, self._unknown_id) for word in looked_up]
            row[: len(text)] = torch.tensor(ids, device="cpu")
        batch = IndexedBatch.of(words, lengths)
        if self._characters is None:
            return IndexedSentences(batch.ids, words, batch.mask)
        spelled = self._characters.spell(texts)
        return IndexedSentences(spelled.token_ids(), words, spelled.mask)
