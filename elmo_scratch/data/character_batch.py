"""Sentences of words as one tensor of character ids."""

from typing import Sequence

import torch
from allennlp.data import Token, Vocabulary

from elmo_scratch.alphabet import MAX_CHARACTERS_PER_TOKEN
from elmo_scratch.data.character_indexer import CharacterIndexer


def batch_to_ids(
    batch: Sequence[Sequence[str]], max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN
) -> torch.Tensor:
    """
    # Parameters

    batch : `Sequence[Sequence[str]]`
        The words of each sentence.
    max_characters_per_token : `int`, optional (default = `50`, the released models' value)
        Ids of a word, marks and padding included.

    # Returns

    `torch.Tensor`
        Shape `(batch, tokens, characters)`, 0 where a sentence has ended.

    # Raises

    ValueError
        If a sentence is not a sequence of words.
    """
    for number, sentence in enumerate(batch):
        is_sequence = isinstance(sentence, Sequence) and not isinstance(sentence, (str, bytes))
        if not is_sequence or not all(isinstance(word, str) for word in sentence):
            raise ValueError(
                f"expected sentence {number} to be a sequence of words, but got {sentence!r}"
            )
    indexer = CharacterIndexer(max_characters_per_token=max_characters_per_token)
    vocab = Vocabulary()
    longest = max((len(sentence) for sentence in batch), default=0)
    rows = [
        indexer.as_padded_tensor_dict(
            indexer.tokens_to_indices([Token(word) for word in sentence], vocab),
            {"elmo_tokens": longest},
        )["elmo_tokens"]
        for sentence in batch
    ]
    return torch.stack(rows) if rows else torch.zeros(0, 0, max_characters_per_token).long()
