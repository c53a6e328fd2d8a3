from typing import Any

import pytest
import torch

from elmo_scratch.modules.token_encoders import CharWordEncoder
from elmo_scratch.modules.token_encoders.char_cnn_encoder import CharacterSettings, WordSettings

BEGIN_WORD, END_WORD, PADDING = 5, 6, 7
CHARACTERS = CharacterSettings(7, 2, [(1, 2), (3, 3)], 1, "tanh", PADDING)
WORDS = WordSettings(4, 3)


def encoder_of(**settings: Any) -> CharWordEncoder:
    torch.manual_seed(3)
    return CharWordEncoder(
        **{
            "dim": 5,
            "words": WORDS,
            "characters": CHARACTERS,
            "begin": [1, BEGIN_WORD, 1, END_WORD, PADDING],
            "end": [2, BEGIN_WORD, 2, END_WORD, PADDING],
            **settings,
        }
    )


@torch.no_grad()
def test_a_word_and_its_characters_are_joined_and_projected() -> None:
    # One number a word, one a character, one filter of width 1 that passes it on.
    characters = CharacterSettings(7, 1, [(1, 1)], 0, "relu", PADDING)
    encoder = encoder_of(dim=1, words=WordSettings(4, 1), characters=characters)
    assert encoder.embedding is not None and encoder.convolution is not None
    encoder.embedding.weight.copy_(torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0]]))
    letters = [[0.0], [0.1], [0.2], [0.7], [0.4], [0.0], [0.0], [0.5]]
    encoder.convolution.embedding.weight.copy_(torch.tensor(letters))
    encoder.convolution.convolutions[0].weight.fill_(1.0)
    encoder.convolution.convolutions[0].bias.fill_(0.0)
    encoder.projection.weight.copy_(torch.tensor([[10.0, 100.0]]))
    encoder.projection.bias.fill_(7.0)
    rows = torch.tensor([[4, BEGIN_WORD, 3, 4, END_WORD], [2, BEGIN_WORD, 4, END_WORD, PADDING]])
    # Word 4 is 4.0, its highest character 0.7; word 2 is 2.0, its padding 0.5 above the 0.4.
    expected = torch.tensor([[40.0 + 70.0 + 7.0], [20.0 + 50.0 + 7.0]])
    assert torch.allclose(encoder.encode_words(rows), expected)


@torch.no_grad()
def test_a_word_alone_equals_itself_in_a_batch() -> None:
    encoder = encoder_of()
    ids = torch.tensor(
        [
            [[1, 5, 1, 3, 6], [3, 5, 6, 7, 7], [1, 5, 1, 3, 6]],
            [[4, 5, 2, 6, 7], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
        ]
    )
    mask = ids.any(dim=2)
    vectors = encoder(ids, mask).vectors  # (batch, tokens + 2, dim)
    for row, token in mask.nonzero().tolist():
        alone = encoder.encode_words(ids[row, token].unsqueeze(0))[0]
        assert torch.allclose(vectors[row, token + 1], alone, atol=1e-6)
    begin, end = encoder.encode_marks()
    assert torch.allclose(vectors[1, 0], begin) and torch.allclose(vectors[1, 2], end)


@torch.no_grad()
def test_words_with_large_numbers_are_told_apart_in_the_cache() -> None:
    encoder = encoder_of(words=WordSettings(2**17, 3), characters=None, begin=[1], end=[2])
    encoder.requires_grad_(False)
    ids = torch.tensor([[3], [3 + 2**16]])  # equal in 16 bits
    one, other = (encoder.encode_words(row.unsqueeze(0)) for row in ids)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    "row, message",
    [
        ([5, 5, 1, 6, 7], "ids of words from 0 to 4, but got ids from 5 to 5"),
        ([4, 5, 8, 6, 7], "ids of characters from 0 to 7, but got ids from 5 to 8"),
        ([4, 5, 1, 6], r"\(batch, tokens, 5\), but got the shape \(1, 1, 4\)"),
    ],
)
def test_ids_out_of_range_are_an_error(row: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        encoder_of()(torch.tensor([[row]]), torch.ones(1, 1, dtype=torch.bool))


def test_an_encoder_that_reads_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="`words`, `characters` or both, but got neither"):
        encoder_of(words=None, characters=None)
