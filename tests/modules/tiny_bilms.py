"""Tiny biLMs over words and over characters, and what they read, by the same numbers."""

from typing import Any, List, Optional

import pytest
import torch

from elmo_scratch.alphabet import character_ids
from elmo_scratch.modules import BiLm, BiLmOutput, LstmState
from elmo_scratch.modules.sequences import PackedVectors
from elmo_scratch.modules.token_encoders import (
    CharCnnEncoder,
    EncodedTokens,
    TokenEncoder,
    WordEncoder,
)

WORDS, DIM, CELL, CHARACTERS = 13, 3, 7, 11
SPELLED = ["the", "a", "cats", "of", "Paris", "sleep", "in", "extraordinary", "é", "", "...", "I"]
"""The words of the numbers from 1 on."""


class LetterEncoder(TokenEncoder):
    """A token encoder of someone else."""

    reads_characters = True

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> EncodedTokens:
        raise NotImplementedError

    def encode_words(self, ids: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


each_encoder = pytest.mark.parametrize("encoder", ["word", "char_cnn"])


def bilm_of(encoder: str = "word", **settings: Any) -> BiLm:
    """In evaluation, with weights of a size that makes states differ."""
    torch.manual_seed(13)
    token_encoder: TokenEncoder
    if encoder == "word":
        token_encoder = WordEncoder(dim=DIM, num_words=WORDS, begin_id=11, end_id=12)
    else:
        filters = [(1, 13), (3, 19)]
        token_encoder = CharCnnEncoder(
            dim=DIM, filters=filters, max_characters_per_token=CHARACTERS
        )
    standard = {"cell_size": CELL, "dropout": 0.5}
    bilm = BiLm(token_encoder=token_encoder, **{**standard, **settings}).eval()
    for name, parameter in bilm.named_parameters():
        if "_to_" in name:
            torch.nn.init.normal_(parameter, std=0.5)
    return bilm


def ids_for(bilm: BiLm, numbers: torch.Tensor) -> torch.Tensor:
    """What the biLM's encoder reads, for the numbers of words; 0 is no word."""
    if isinstance(bilm.token_encoder, WordEncoder):
        return numbers
    table = [[0] * CHARACTERS, *(character_ids(word, CHARACTERS) for word in SPELLED)]
    return torch.tensor(table)[numbers]


def read(bilm: BiLm, numbers: torch.Tensor) -> BiLmOutput:
    return bilm(ids_for(bilm, numbers), numbers > 0)


def read_alone(bilm: BiLm, *sentences: torch.Tensor) -> torch.Tensor:
    """
    The layers of the last of some sentences, of shape `(layers, positions, width)`. Each stack
    reads them one after the other, each from where the one before ended.
    """
    states: List[Optional[LstmState]] = [None, None]
    for padded in sentences:
        numbers = padded[padded > 0].unsqueeze(0)
        vectors = bilm.token_encoder(ids_for(bilm, numbers), numbers > 0).vectors[0]
        widths = [1] * len(vectors)
        left_to_right = bilm.left_to_right(PackedVectors(vectors, widths), states[0])
        right_to_left = bilm.right_to_left(PackedVectors(vectors.flip(0), widths), states[1])
        states = [left_to_right.state, right_to_left.state]
    backs = [layer.flip(0) for layer in right_to_left.layers]
    pairs = [(vectors, vectors), *zip(left_to_right.layers, backs, strict=True)]
    return torch.stack([torch.cat(pair, dim=-1) for pair in pairs])
