"""
The ids of a biLM from an archive, by the reader that it was trained with.

This file stands alone because `allennlp.data` takes seconds to import: whoever reads official files
doesn't wait for it.
"""

from typing import Dict

import torch
from allennlp.data import Batch, DatasetReader, Token, Vocabulary

from elmo_scratch.data.character_indexer import CharacterIndexer
from elmo_scratch.data.sentences_reader import SentencesReader
from elmo_scratch.data.spelling import check_sentences
from elmo_scratch.embedders.sentences.indexers import (
    CharacterWordIndexer,
    IndexedBatch,
    Sentences,
    WordIndexer,
)
from elmo_scratch.interop.archives.archive import PretrainedBiLm
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder
from elmo_scratch.modules.token_encoders.token_ids import token_ids


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
