"""Encodes words by their characters: convolutions, highway layers, a projection."""

from typing import List, Sequence, Tuple

import torch

from elmo_scratch.alphabet import (
    CHARACTERS_PER_TOKEN,
    MAX_CHARACTERS_PER_TOKEN,
    NUM_BATCH_IDS,
    sentence_marks,
)
from elmo_scratch.kernels import Linear
from elmo_scratch.modules.token_encoders.char_convolution import (
    ACTIVATIONS,
    CharacterConvolution,
    Highway,
    lengths,
)
from elmo_scratch.modules.token_encoders.spelled_word_encoder import (
    CACHED_WORDS,
    SpelledWordEncoder,
)
from elmo_scratch.modules.token_encoders.token_encoder import TokenEncoder, check_ids


def check_settings(
    filters: Sequence[Tuple[int, int]], activation: str, max_characters: int
) -> None:
    """Raises a `ValueError` if these parameters of `CharCnnEncoder` make no sense."""
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"expected an `activation` among {', '.join(ACTIVATIONS)}, but got {activation!r}"
        )
    if max_characters not in CHARACTERS_PER_TOKEN:
        raise ValueError(
            f"expected `max_characters_per_token` from {CHARACTERS_PER_TOKEN[0]} to "
            f"{CHARACTERS_PER_TOKEN[-1]}, but got {max_characters}"
        )
    if not filters:
        raise ValueError("expected at least one pair of a width and a number in `filters`")
    for width, number in filters:
        if not 1 <= width <= max_characters or number < 1:
            raise ValueError(
                f"expected in `filters` widths from 1 to {max_characters} and at least one filter "
                f"of each, but got {[width, number]}"
            )


@TokenEncoder.register("char_cnn")
class CharCnnEncoder(SpelledWordEncoder):
    """
    Convolutions over the characters of a word, their maxima through highway layers, and a
    projection.

    Registered as a `TokenEncoder` with name "char_cnn".

    # Parameters

    dim : `int`
        The size of a vector. If it equals the number of filters there is no projection.
    character_dim : `int`, optional (default = `16`, the released models' value)
        The size of a character's vector.
    filters : `List[Tuple[int, int]]`
        Pairs of a width, in characters, and the number of filters of that width.
    num_highway : `int`, optional (default = `2`, the released original model's value)
        How many highway layers.
    activation : `str`, optional (default = `"relu"`)
        The activation of the convolutions: `"relu"` or `"tanh"`.
    max_characters_per_token : `int`, optional (default = `50`, the released models' value)
        How many ids a word has in `forward`.
    cached_words : `int`, optional (default = `16384`)
        How many words' vectors are cached; 0 caches none.

    # Raises

    ValueError
        If a size, the filters, the activation or the number of characters make no sense.

    # Source

    Peters et al. 2018, section 3.4; `BidirectionalLanguageModelGraph._build_word_char_embeddings`
    of `bilm-tf`.
    """

    id_type = torch.int16

    def __init__(
        self,
        *,
        dim: int,
        filters: List[Tuple[int, int]],
        character_dim: int = 16,
        num_highway: int = 2,
        activation: str = "relu",
        max_characters_per_token: int = MAX_CHARACTERS_PER_TOKEN,
        cached_words: int = CACHED_WORDS,
    ) -> None:
        check_settings(filters, activation, max_characters_per_token)
        begin, end = sentence_marks(max_characters_per_token)
        super().__init__(dim, begin=begin, end=end, cached_words=cached_words)
        if character_dim < 1:
            raise ValueError(f"expected `character_dim` of 1 or more, but got {character_dim}")
        if num_highway < 0:
            raise ValueError(f"expected `num_highway` of 0 or more, but got {num_highway}")
        self.max_characters_per_token = max_characters_per_token
        self.convolution = CharacterConvolution(character_dim, filters, activation)
        num_filters = self.convolution.output_dim
        self.highways = torch.nn.ModuleList()
        for _ in range(num_highway):
            self.highways.append(Highway(num_filters))
        self.projection = Linear(num_filters, dim) if num_filters != dim else torch.nn.Identity()

    def lengths(self, ids: torch.Tensor) -> torch.Tensor:
        return lengths(ids)

    def encode_sorted(self, ids: torch.Tensor) -> torch.Tensor:
        vectors = self.convolution(ids)
        for highway in self.highways:
            vectors = highway(vectors)
        return self.projection(vectors)

    def check_range(self, ids: torch.Tensor) -> None:
        check_ids(ids, "characters", NUM_BATCH_IDS)
