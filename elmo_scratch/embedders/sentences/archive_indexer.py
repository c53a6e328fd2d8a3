"""
The ids of a biLM from an archive, by the reader that it was trained with.

This file stands alone because `allennlp.data` takes seconds to import, which only archives need.
"""

from typing import Dict, Sequence

import torch
from allennlp.data import Batch, DatasetReader, Token, Vocabulary

from elmo_scratch.data.character_indexer import CharacterIndexer
from elmo_scratch.data.sentences_reader import SentencesReader
from elmo_scratch.data.spelling import (
    CharacterWordIndexer,
    IndexedBatch,
    Sentences,
    WordIndexer,
    words_of,
)
from elmo_scratch.interop.archives.archive import PretrainedBiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder
from elmo_scratch.modules.token_encoders.token_ids import token_ids


class ReaderWordIndexer(WordIndexer):
    """
    Makes ids by the indexers of a dataset reader of any kind. The reader needs `text_to_instance`
    from a list of tokens to a field "sentence"; its tokenizer plays no part, since words come
    split. `vocab` is the indexers' vocabulary; `encoder` tells which of the indexers' ids are read.
    """

    def __init__(self, reader: DatasetReader, vocab: Vocabulary, encoder: TokenEncoder) -> None:
        self._reader = reader
        self._vocab = vocab
        self._encoder = encoder

    def spell(self, sentences: Sentences) -> IndexedBatch:
        words = words_of(sentences)
        lengths = [len(sentence) for sentence in words]
        return IndexedBatch.of(self._ids_of(words), lengths)

    def _ids_of(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """Returns ids of shape `(batch, tokens)` or `(batch, tokens, characters)`."""
        if not any(len(sentence) for sentence in sentences):
            # AllenNLP can't make an empty batch.
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
    Returns the indexers of the reader that the biLM was trained with; or, where it makes the same
    ids, a `CharacterWordIndexer`, which is many times faster.
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
            # If it doesn't fit, the slower indexer raises an error that says why.
            if max_characters == encoder.max_characters_per_token:
                return CharacterWordIndexer(max_characters)
    return ReaderWordIndexer(reader, pretrained.vocab, encoder)
