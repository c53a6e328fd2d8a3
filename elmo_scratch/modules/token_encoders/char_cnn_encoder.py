"""Encodes words by their characters: convolutions, highway layers, a projection."""

from typing import List, NamedTuple, Sequence, Tuple

import torch

from elmo_scratch.alphabet import (
    CHARACTERS_PER_TOKEN,
    MAX_CHARACTERS_PER_TOKEN,
    NUM_BATCH_IDS,
    PADDING_ID,
    sentence_marks,
)
from elmo_scratch.kernels import Linear
from elmo_scratch.modules.sequences import add_boundaries
from elmo_scratch.modules.token_encoders.char_convolution import (
    ACTIVATIONS,
    CharacterConvolution,
    Highway,
    lengths,
)
from elmo_scratch.modules.token_encoders.token_encoder import EncodedTokens, TokenEncoder, check_ids
from elmo_scratch.modules.token_encoders.word_cache import WordVectorCache


class UniqueWords(NamedTuple):
    """
    The distinct words of a batch, shape `(distinct, characters)`, and the index of each of its
    words in them, shape `(rows,)`.
    """

    ids: torch.Tensor
    places: torch.Tensor

    @classmethod
    def of(cls, ids: torch.Tensor) -> "UniqueWords":
        """The distinct words of ids of shape `(rows, characters)`."""
        # Sorting one hash per word is many times faster than sorting words. Collisions are detected
        # below.
        codes, places = torch.unique(_codes(ids), return_inverse=True)
        somewhere = torch.empty_like(codes)
        somewhere[places] = torch.arange(ids.size(0), device=ids.device)
        distinct = ids[somewhere]
        if torch.equal(distinct[places], ids):
            return cls(distinct, places)
        return cls(*torch.unique(ids, dim=0, return_inverse=True))


def _codes(ids: torch.Tensor) -> torch.Tensor:
    """A hash of each word, shape `(rows,)`."""
    generator = torch.Generator().manual_seed(ids.size(1))
    drawn = torch.randint(-(2**62), 2**62, (ids.size(1),), generator=generator, device="cpu")
    factors = drawn * 2 + 1
    return (ids * factors.to(ids.device)).sum(dim=1)


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


WORDS_TOGETHER = 16
"""
Products above the convolutions have a multiple of so many words: oneDNN compiles kernels for each
number of rows, and the number of words differs in nearly every batch.
"""

WORDS_AT_ONCE = 2048
"""How many words go through the layers together: bounds memory use."""

CACHED_WORDS = 2**14
"""How many words' vectors are cached by default."""


@TokenEncoder.register("char_cnn")
class CharCnnEncoder(TokenEncoder):
    """
    Convolutions over the characters of a word, their maxima through highway layers, and a
    projection.

    A vector depends on the word alone. Each distinct word of a batch is encoded only once, and
    vectors are cached from batch to batch if no gradient is needed.

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

    reads_characters = True

    _begin: torch.Tensor
    _end: torch.Tensor

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
        super().__init__(dim)
        check_settings(filters, activation, max_characters_per_token)
        if character_dim < 1:
            raise ValueError(f"expected `character_dim` of 1 or more, but got {character_dim}")
        if num_highway < 0 or cached_words < 0:
            raise ValueError(
                "expected `num_highway` and `cached_words` of 0 or more, but got "
                f"{num_highway} and {cached_words}"
            )
        self.max_characters_per_token = max_characters_per_token
        self.convolution = CharacterConvolution(character_dim, filters, activation)
        num_filters = self.convolution.output_dim
        self.highways = torch.nn.ModuleList(Highway(num_filters) for _ in range(num_highway))
        self.is_projected = num_filters != dim
        self.projection = Linear(num_filters, dim) if self.is_projected else torch.nn.Identity()
        begin, end = sentence_marks(max_characters_per_token)
        self.register_buffer("_begin", torch.tensor(begin), persistent=False)
        self.register_buffer("_end", torch.tensor(end), persistent=False)
        self._cache = WordVectorCache(cached_words)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> EncodedTokens:
        """
        Shape `(batch, tokens, characters)`, ids from 0 to 261, → vectors
        `(batch, tokens + 2, dim)`. Raises a `ValueError` for ids out of range and words without
        `max_characters_per_token` ids.
        """
        self._check_shape(ids, "batch", "tokens")
        self.check_ids(ids)
        bounded = add_boundaries(ids, mask, self._begin, self._end)
        vectors = self.encode_words(bounded.ids[bounded.mask])  # (read, dim)
        empty = vectors.new_zeros(bounded.mask.numel(), self.dim)
        places = bounded.mask.flatten().nonzero().squeeze(1)  # (read,)
        laid = empty.index_copy(0, places, vectors).view(*bounded.mask.shape, self.dim)
        return EncodedTokens(laid, bounded.mask)

    def encode_laid(
        self, words: torch.Tensor, places: torch.Tensor, mask: torch.Tensor
    ) -> EncodedTokens:
        """
        Encodes a batch whose distinct words are known already: `words`, shape
        `(words, characters)`, and each token's index in them, `places`, shape `(batch, tokens)`.
        Gives vectors of shape `(batch, tokens + 2, dim)`. Raises a `ValueError` for ids out of
        range, words without `max_characters_per_token` ids, and real tokens that don't come first
        in each row.
        """
        self._check_shape(words, "words")
        self.check_ids(words)
        marks = torch.stack([self._begin, self._end]).to(words.dtype)
        vectors = self._vectors_of(torch.cat([words, marks]))
        begin, end = places.new_tensor([len(words), len(words) + 1])
        bounded = add_boundaries(places, mask, begin, end)
        laid = torch.nn.functional.embedding(bounded.ids, vectors)
        return EncodedTokens(laid.masked_fill(~bounded.mask.unsqueeze(-1), 0.0), bounded.mask)

    def check_ids(self, ids: torch.Tensor) -> None:
        """
        Raises a `ValueError` if an id, in a tensor of any shape, is not a character's id in a
        batch, or the tensor's type has no room for all ids.
        """
        check_ids(ids, "characters", NUM_BATCH_IDS)

    def encode_words(self, ids: torch.Tensor) -> torch.Tensor:
        """Shape `(words, characters)` → `(words, dim)`."""
        words = UniqueWords.of(ids)
        vectors = self._vectors_of(words.ids)
        # Its backward pass is deterministic with many threads, unlike that of `vectors[…]`.
        return torch.nn.functional.embedding(words.places, vectors)

    def encode_marks(self) -> Tuple[torch.Tensor, torch.Tensor]:
        """The vectors of the begin and the end mark of a sentence, each of shape `(dim,)`."""
        begin, end = self.encode_words(torch.stack([self._begin, self._end]))
        return begin, end

    def keep_words(self, ids: torch.Tensor) -> None:
        """
        Encodes words, shape `(words, characters)`, ahead, and keeps their vectors, besides
        `cached_words` others, until the weights change. With weights that are trained nothing is
        kept.
        """
        with torch.no_grad():
            distinct = UniqueWords.of(ids).ids
            self._cache.pin(distinct, list(self.parameters()), self.encode_distinct)

    def forget_words(self) -> None:
        """
        Drops everything that is cached from batch to batch. This is needed only after writes to
        frozen weights through `.data`, not all of which are detected.
        """
        self._cache.clear()
        for module in self.modules():
            if isinstance(module, Linear):
                module.forget_product()

    def encode_distinct(self, ids: torch.Tensor) -> torch.Tensor:
        """
        Encodes words without looking for duplicates or in the cache: `(distinct, characters)` →
        `(distinct, dim)`.
        """
        if len(ids) == 0:
            return self._end.new_zeros(0, self.dim, dtype=self.convolution.embedding.weight.dtype)
        order = lengths(ids).argsort()
        encoded = [self._encode_sorted(ids[part].long()) for part in order.split(WORDS_AT_ONCE)]
        return torch.cat(encoded)[order.argsort()]

    def _check_shape(self, ids: torch.Tensor, *axes: str) -> None:
        """Raises a `ValueError` for ids of another shape."""
        if ids.dim() != len(axes) + 1 or ids.size(-1) != self.max_characters_per_token:
            raise ValueError(
                f"expected the ids of characters in the shape ({', '.join(axes)}, "
                f"{self.max_characters_per_token}), but got the shape {tuple(ids.shape)}"
            )

    def _vectors_of(self, ids: torch.Tensor) -> torch.Tensor:
        """Encodes distinct words, using the cache unless a gradient is needed."""
        weights = list(self.parameters())
        if torch.is_grad_enabled() and any(weight.requires_grad for weight in weights):
            return self.encode_distinct(ids)
        return self._cache.look_up(ids, weights, self.encode_distinct)

    def _encode_sorted(self, ids: torch.Tensor) -> torch.Tensor:
        """The vectors of words sorted by length, shape `(words, dim)`."""
        num_words = len(ids)
        missing = -num_words % WORDS_TOGETHER
        # Pads the number of words to a multiple, with empty words, which are the shortest.
        ids = torch.cat([ids.new_full((missing, ids.size(1)), PADDING_ID), ids])
        vectors = self.convolution(ids)
        for highway in self.highways:
            vectors = highway(vectors)
        return self.projection(vectors)[missing:]
