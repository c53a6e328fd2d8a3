"""Indexes the characters of each token of a text field."""

from typing import Any, Dict, List

import numpy
import torch
from allennlp.data import Token, TokenIndexer, Vocabulary

from elmo_scratch.alphabet import MAX_CHARACTERS_PER_TOKEN
from elmo_scratch.data.spelling import check_max_characters, spelled_word


@TokenIndexer.register("elmo_scratch_characters")
class CharacterIndexer(TokenIndexer):
    """
    Spells tokens for biLMs of characters. It needs no vocabulary.

    Registered as a `TokenIndexer` with name "elmo_scratch_characters".

    # Parameters

    max_characters_per_token : `int`, optional (default = `50`, the released models' value)
        Ids of a token, marks and padding included.
    token_min_padding_length : `int`, optional (default = `0`)
        The least number of tokens to pad to, see `TokenIndexer`.

    # Raises

    ConfigurationError
        If there is no room for a sentence mark between two word marks, or more than 4,096 ids.
    """

    def __init__(
        self,
        *,
        max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN,
        token_min_padding_length: int = 0,
    ) -> None:
        super().__init__(token_min_padding_length)
        check_max_characters(max_characters_per_token)
        self.max_characters_per_token = max_characters_per_token

    def count_vocab_items(self, token: Token, counter: Dict[str, Dict[str, int]]) -> None:
        """Counts nothing: spelling needs no vocabulary."""

    def get_empty_token_list(self) -> Dict[str, List[Any]]:
        return {"elmo_tokens": []}

    def tokens_to_indices(
        self, tokens: List[Token], vocabulary: Vocabulary
    ) -> Dict[str, List[Any]]:
        """Spells each token: `elmo_tokens` lists arrays of ids, each of shape `(characters,)`."""
        return {
            "elmo_tokens": [
                spelled_word(token.ensure_text(), self.max_characters_per_token) for token in tokens
            ]
        }

    def as_padded_tensor_dict(
        self, tokens: Dict[str, List[Any]], padding_lengths: Dict[str, int]
    ) -> Dict[str, torch.Tensor]:
        """Pads with 0: `elmo_tokens` has the shape `(tokens, characters)`."""
        length = padding_lengths["elmo_tokens"]
        ids = numpy.zeros((length, self.max_characters_per_token), dtype=numpy.int64)
        for place, spelled in enumerate(tokens["elmo_tokens"][:length]):
            ids[place] = spelled
        return {"elmo_tokens": torch.from_numpy(ids)}
