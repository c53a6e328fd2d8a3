"""Indexers of the characters of words: by their bytes, or by their code points."""

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
