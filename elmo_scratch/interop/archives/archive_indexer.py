"""
The ids of a biLM from an archive, by the reader that it was trained with.

This file stands alone because `allennlp.data` takes seconds to import, which only archives need.
"""

from typing import Dict, List, Optional, Sequence

import torch
from allennlp.data import Batch, DatasetReader, Token, Vocabulary
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_scratch.data.indexers import CharacterIndexer
from elmo_scratch.data.readers import SentencesReader
from elmo_scratch.data.spelling import (
    CharacterWordIndexer,
    IndexedBatch,
    Sentences,
    WordIndexer,
    words_of,
)
from elmo_scratch.interop.archives.archive import PretrainedBiLm
from elmo_scratch.interop.archives.blueprint import ListedWordIndexer
from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder, WordEncoder


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
        return self._encoder.token_ids(text)


def archive_word_indexer(pretrained: PretrainedBiLm) -> WordIndexer:
    """
    Returns the indexers of the reader that the biLM was trained with; or, where they make the same
    ids, a `CharacterWordIndexer` or a `ListedWordIndexer`, which are many times faster.
    """
    reader = pretrained.reader
    quick = _quick_indexer(pretrained, reader) if isinstance(reader, SentencesReader) else None
    return quick or ReaderWordIndexer(reader, pretrained.vocab, pretrained.bilm.token_encoder)


def predicts_lowercase(pretrained: PretrainedBiLm) -> bool:
    """Whether the reader gives words to predict their ids in lower case."""
    reader = pretrained.reader
    return isinstance(reader, SentencesReader) and any(
        isinstance(indexer, SingleIdTokenIndexer) and indexer.lowercase_tokens
        for indexer in reader.token_indexers.values()
    )


def _quick_indexer(pretrained: PretrainedBiLm, reader: SentencesReader) -> Optional[WordIndexer]:
    """Returns an indexer that does without the reader, `None` if there is none."""
    encoder = pretrained.bilm.token_encoder
    wanted = "elmo_tokens" if encoder.reads_characters else "tokens"
    makers = [
        indexer
        for indexer in reader.token_indexers.values()
        if wanted in indexer.get_empty_token_list()
    ]
    if len(makers) != 1:
        return None
    (maker,) = makers
    if isinstance(encoder, CharCnnEncoder) and isinstance(maker, CharacterIndexer):
        # If it doesn't fit, the slower indexer raises an error that says why.
        if maker.max_characters_per_token == encoder.max_characters_per_token:
            return CharacterWordIndexer(maker.max_characters_per_token)
    elif isinstance(encoder, WordEncoder) and type(maker) is SingleIdTokenIndexer:
        plain = SingleIdTokenIndexer(
            maker.namespace,
            maker.lowercase_tokens,
            token_min_padding_length=maker._token_min_padding_length,  # is cut off
        )
        words = pretrained.blueprint.words
        is_plain = maker._to_params() == plain._to_params()
        if is_plain and _words_of(pretrained.vocab, maker.namespace) == words.words:
            return ListedWordIndexer(words, maker.lowercase_tokens)
    return None


def _words_of(vocab: Vocabulary, namespace: Optional[str]) -> List[str]:
    """Returns the words of a namespace in the order of their ids; none if there is none."""
    if namespace is None or namespace not in vocab.get_namespaces():
        return []
    by_id = vocab.get_index_to_token_vocabulary(namespace)
    return [by_id[number] for number in range(len(by_id))]
