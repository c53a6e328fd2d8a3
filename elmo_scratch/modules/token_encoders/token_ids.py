"""Finds the ids of a text that a token encoder reads."""

from typing import Mapping

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.token_encoders import CharCnnEncoder, TokenEncoder


def token_ids(
    text: Mapping[str, Mapping[str, torch.Tensor]], encoder: TokenEncoder
) -> torch.Tensor:
    """
    The ids that `encoder` reads, of words or of their characters, among AllenNLP's
    `TextFieldTensors`: shape `(batch, tokens)`, or `(batch, tokens, characters)`. Raises a
    `ConfigurationError` if no indexer makes such ids.
    """
    by_name = {name: ids for tensors in text.values() for name, ids in tensors.items()}
    wanted = "elmo_tokens" if encoder.reads_characters else "tokens"
    if wanted not in by_name:
        raise ConfigurationError(
            f"{_expected(encoder)}, but the indexers {sorted(text)} make {sorted(by_name)}"
        )
    check_token_ids(by_name[wanted], encoder)
    return by_name[wanted]


def check_token_ids(ids: torch.Tensor, encoder: TokenEncoder) -> None:
    """
    Raises a `ConfigurationError` if `encoder` reads words and an indexer's ids are of characters,
    or the other way round, or if the number of characters differs.
    """
    if ids.dim() != (3 if encoder.reads_characters else 2):
        raise ConfigurationError(f"{_expected(encoder)}, but got ids of {_form(ids)}")
    if isinstance(encoder, CharCnnEncoder) and ids.size(-1) != encoder.max_characters_per_token:
        raise ConfigurationError(
            f"the biLM reads {encoder.max_characters_per_token} characters of each word, but its "
            f"indexer makes {ids.size(-1)}. Set the indexer's `max_characters_per_token` to "
            f"{encoder.max_characters_per_token}."
        )


def _expected(encoder: TokenEncoder) -> str:
    """Names the ids that an encoder reads, and their indexer."""
    if encoder.reads_characters:
        return (
            "the biLM reads the characters of words, which an indexer of the type "
            "`elmo_scratch_characters` makes"
        )
    return "the biLM reads ids of words, which an indexer of the type `single_id` makes"


def _form(ids: torch.Tensor) -> str:
    """Describes ids by their number of axes."""
    kind = {2: "words", 3: "characters"}.get(ids.dim(), "another kind")
    return f"{kind}, of the shape {tuple(ids.shape)}"
