"""Indexes the Unicode characters of each token of a text field."""

from typing import Any, Dict, List

import numpy
import torch
from allennlp.data import Token, TokenIndexer, Vocabulary

KEY, LENGTH_KEY = "code_points", "num_code_points"

MOST_CODE_POINTS = 1024
"""Only the beginning of a longer token counts."""

BEGIN_TOKEN, FIRST_ID = 1, 2
"""The id before the first character, so that no token is empty; the id of the character U+0000."""


@TokenIndexer.register("elmo_scratch_code_points")
class CodePointIndexer(TokenIndexer):
    """
    Spells tokens by their Unicode characters, for models of ELMoForManyLangs. It needs no
    vocabulary: the embedder knows the model's own words and characters.

    Registered as a `TokenIndexer` with name "elmo_scratch_code_points".

    # Parameters

    token_min_padding_length : `int`, optional (default = `0`)
        The least number of tokens to pad to, see `TokenIndexer`.
    """

    def count_vocab_items(self, token: Token, counter: Dict[str, Dict[str, int]]) -> None:
        """Counts nothing: spelling needs no vocabulary."""

    def get_empty_token_list(self) -> Dict[str, List[Any]]:
        return {KEY: []}

    def tokens_to_indices(
        self, tokens: List[Token], vocabulary: Vocabulary
    ) -> Dict[str, List[Any]]:
        """Spells each token: `code_points` lists lists of ids."""
        return {
            KEY: [
                [BEGIN_TOKEN, *(FIRST_ID + ord(letter) for letter in word[:MOST_CODE_POINTS])]
                for word in (token.ensure_text() for token in tokens)
            ]
        }

    def get_padding_lengths(self, indexed_tokens: Dict[str, List[Any]]) -> Dict[str, int]:
        """The number of tokens, and the ids of the longest."""
        words = indexed_tokens[KEY]
        return {
            KEY: max(len(words), self._token_min_padding_length),
            LENGTH_KEY: max(map(len, words), default=1),
        }

    def as_padded_tensor_dict(
        self, tokens: Dict[str, List[Any]], padding_lengths: Dict[str, int]
    ) -> Dict[str, torch.Tensor]:
        """Pads with 0: `code_points` has the shape `(tokens, ids)`."""
        length, longest = padding_lengths[KEY], padding_lengths[LENGTH_KEY]
        ids = numpy.zeros((length, longest), dtype=numpy.int64)
        for row, spelled in zip(ids, tokens[KEY]):
            row[: len(spelled)] = spelled[:longest]
        return {KEY: torch.from_numpy(ids)}


def spelled_words(ids: torch.Tensor) -> List[str]:
    """The words with these ids, shape `(words, ids)`."""
    return [
        "".join(chr(number - FIRST_ID) for number in row if number >= FIRST_ID)
        for row in ids.tolist()
    ]
