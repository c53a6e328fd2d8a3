"""Encodes words by a vector of the word and by its characters, together or one of them alone."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.kernels import Linear
from elmo_scratch.modules.token_encoders.char_cnn_encoder import (
    CharacterConvolution,
    Highway,
    lengths,
)
from elmo_scratch.modules.token_encoders.spelled_word_encoder import (
    CACHED_WORDS,
    SpelledWordEncoder,
)
from elmo_scratch.modules.token_encoders.token_encoder import check_ids


class WordSettings(NamedTuple):
    """The number of words, and the size of a word's vector."""

    num_words: int
    dim: int


class CharacterSettings(NamedTuple):
    """
    The number of characters, marks included; the size of a character's vector; `filters`,
    `num_highway` and `activation` as in `CharCnnEncoder`; and the id of the padding within a word.
    """

    num_characters: int
    dim: int
    filters: Sequence[Tuple[int, int]]
    num_highway: int
    activation: str
    padding_id: int


class CharWordEncoder(SpelledWordEncoder):
    """
    Joins a word's own vector and the maxima of convolutions over its characters, these through
    highway layers, and projects the whole. A word's row of ids holds the id of the word, if there
    are `words`, then the ids of its characters, if there are `characters`. All ids count from 1.

    # Parameters

    dim : `int`
        The size of a vector.
    words : `Optional[WordSettings]`
        The table of words; `None` for no vectors of words.
    characters : `Optional[CharacterSettings]`
        The convolutions; `None` for none.
    begin, end : `Sequence[int]`
        The ids of the marks of sentence boundaries, as many as each word has.
    cached_words : `int`, optional (default = `16384`)
        How many words' vectors are cached; 0 caches none.

    # Raises

    ValueError
        If there are neither `words` nor `characters`, or `dim` or `cached_words` make no sense.

    # Source

    `ConvTokenEmbedder` of ELMoForManyLangs; Che et al. 2018, "Towards Better UD Parsing", section
    2.2.
    """

    id_type = torch.int32

    def __init__(
        self,
        *,
        dim: int,
        words: Optional[WordSettings],
        characters: Optional[CharacterSettings],
        begin: Sequence[int],
        end: Sequence[int],
        cached_words: int = CACHED_WORDS,
    ) -> None:
        super().__init__(dim, begin=begin, end=end, cached_words=cached_words)
        self.embedding: Optional[torch.nn.Embedding] = None
        self.convolution: Optional[CharacterConvolution] = None
        self.highways = torch.nn.ModuleList()
        joined_dim = 0
        if words is not None:
            self.embedding = torch.nn.Embedding(1 + words.num_words, words.dim, padding_idx=0)
            joined_dim += words.dim
        if characters is not None:
            self.convolution = CharacterConvolution(
                characters.dim,
                characters.filters,
                characters.activation,
                num_ids=1 + characters.num_characters,
                padding_id=characters.padding_id,
            )
            num_filters = self.convolution.output_dim
            for _ in range(characters.num_highway):
                self.highways.append(Highway(num_filters))
            joined_dim += num_filters
        if joined_dim == 0:
            raise ValueError("expected `words`, `characters` or both, but got neither")
        self.projection = Linear(joined_dim, dim)

    def lengths(self, ids: torch.Tensor) -> torch.Tensor:
        if self.convolution is None:
            return ids.new_zeros(len(ids))
        return lengths(self._characters(ids), self.convolution.padding_id)

    def encode_sorted(self, ids: torch.Tensor) -> torch.Tensor:
        parts: List[torch.Tensor] = []
        if self.embedding is not None:
            parts.append(self.embedding(ids[:, 0]))
        if self.convolution is not None:
            vectors = self.convolution(self._characters(ids))
            for highway in self.highways:
                vectors = highway(vectors)
            parts.append(vectors)
        return self.projection(torch.cat(parts, dim=1))

    def check_range(self, ids: torch.Tensor) -> None:
        if self.embedding is not None:
            check_ids(ids[..., 0], "words", self.embedding.num_embeddings)
        if self.convolution is not None:
            num_ids = self.convolution.embedding.num_embeddings
            check_ids(self._characters(ids), "characters", num_ids)

    def _characters(self, ids: torch.Tensor) -> torch.Tensor:
        """The ids of characters among those of words, shape `(*, ids)` → `(*, characters)`."""
        return ids if self.embedding is None else ids[..., 1:]
