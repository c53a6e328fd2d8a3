"""Words as the reader of a training spells them."""

from typing import Dict

import torch
from allennlp.data import Batch, DatasetReader, Token, Vocabulary

from elmo_scratch.data.spelling import check_sentences
from elmo_scratch.embedders.sentences.spelled_batch import SpelledBatch
from elmo_scratch.embedders.sentences.speller import Sentences, Speller
from elmo_scratch.modules.token_encoders import TokenEncoder
from elmo_scratch.modules.token_encoders.token_ids import token_ids


class ReaderSpeller(Speller):
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

    def spell(self, sentences: Sentences) -> SpelledBatch:
        """As `Speller.spell`."""
        check_sentences(sentences)
        lengths = [len(sentence) for sentence in sentences]
        return SpelledBatch.of(self._ids_of(sentences), lengths)

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
