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
    # Parameters

    ids : `torch.Tensor`
        Shape `(distinct, characters)`.
    places : `torch.Tensor`
        Shape `(rows,)`: for each word of the batch its row in `ids`.
    """

    ids: torch.Tensor
    places: torch.Tensor

    @classmethod
    def of(cls, ids: torch.Tensor) -> "UniqueWords":
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(rows, characters)`.
        """
        # Sorting one number a word is many times faster than sorting words. Two words that get the
        # same number by chance are noticed.
        codes, places = torch.unique(_codes(ids), return_inverse=True)
        somewhere = torch.empty_like(codes)
        somewhere[places] = torch.arange(ids.size(0), device=ids.device)
        distinct = ids[somewhere]
        if torch.equal(distinct[places], ids):
            return cls(distinct, places)
        return cls(*torch.unique(ids, dim=0, return_inverse=True))


def _codes(ids: torch.Tensor) -> torch.Tensor:
    """A number for each word, shape `(rows,)`, that hardly ever is another word's too."""
    generator = torch.Generator().manual_seed(ids.size(1))
    drawn = torch.randint(-(2**62), 2**62, (ids.size(1),), generator=generator, device="cpu")
    factors = drawn * 2 + 1
    return (ids * factors.to(ids.device)).sum(dim=1)


def check_settings(
    filters: Sequence[Tuple[int, int]], activation: str, max_characters: int
) -> None:
    """
    # Parameters

    filters, activation, max_characters
        As `filters`, `activation` and `max_characters_per_token` of `CharCnnEncoder`.

    # Raises

    ValueError
        If they make no sense.
    """
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
"""Products above the convolutions are made of multiples of so many words: oneDNN compiles kernels
for each number of rows, and hardly two batches have as many words."""

WORDS_AT_ONCE = 2048
"""How many words go through the layers together: bounds the memory that they take."""

CACHED_WORDS = 2**14
"""How many words' vectors are kept, by default."""


@TokenEncoder.register("char_cnn")
class CharCnnEncoder(TokenEncoder):
    """
    Convolutions over the characters of a word, their maxima through highway layers, projected.

    A vector depends on the word alone. So each distinct word of a batch is encoded once, and where
    no gradient is asked for, vectors are kept from batch to batch.

    Registered as a `TokenEncoder` with name "char_cnn".

    # Parameters

    dim : `int`
        The size of a vector. Where it equals the number of filters there is no projection.
    character_dim : `int`, optional (default = `16`, the released models' value)
        The size of a character's vector.
    filters : `List[Tuple[int, int]]`
        Pairs of a width, in characters, and the number of filters of that width.
    num_highway : `int`, optional (default = `2`, the released original model's value)
        How many highway layers.
    activation : `str`, optional (default = `"relu"`)
        Of the convolutions: `"relu"` or `"tanh"`.
    max_characters_per_token : `int`, optional (default = `50`, the released models' value)
        The ids of a word in `forward`.
    cached_words : `int`, optional (default = `16384`)
        How many words' vectors are kept; 0 keeps none.

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
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens, characters)`, from 0 to 261 as in a batch.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`.

        # Returns

        `EncodedTokens`
            Vectors of shape `(batch, tokens + 2, dim)`.

        # Raises

        ValueError
            If the words don't have `max_characters_per_token` ids, or an id is none.
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
        As `forward`, of a batch whose words are spelled once each, so that nobody has to find the
        distinct ones.

        # Parameters

        words : `torch.Tensor`
            Shape `(words, characters)`.
        places : `torch.Tensor`
            Shape `(batch, tokens)`: the place of each token in `words`.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`.

        # Returns

        `EncodedTokens`
            Vectors of shape `(batch, tokens + 2, dim)`.

        # Raises

        ValueError
            If the words don't have `max_characters_per_token` ids, an id is none, or real tokens
            don't come first in each row.
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
        # Parameters

        ids : `torch.Tensor`
            Of any shape.

        # Raises

        ValueError
            If one is no id of a character in a batch, or their type has no room for all ids.
        """
        check_ids(ids, "characters", NUM_BATCH_IDS)

    def encode_words(self, ids: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(words, characters)`.

        # Returns

        `torch.Tensor`
            Shape `(words, dim)`.
        """
        words = UniqueWords.of(ids)
        vectors = self._vectors_of(words.ids)
        # Unlike the backward pass of `vectors[…]`, its adds in the same order with many threads.
        return torch.nn.functional.embedding(words.places, vectors)

    def encode_marks(self) -> Tuple[torch.Tensor, torch.Tensor]:
        """
        # Returns

        `Tuple[torch.Tensor, torch.Tensor]`
            The vectors of the words that mark the beginning and the end of a sentence, each of
            shape `(dim,)`.
        """
        begin, end = self.encode_words(torch.stack([self._begin, self._end]))
        return begin, end

    def keep_words(self, ids: torch.Tensor) -> None:
        """
        Encodes words ahead, and keeps their vectors beside the `cached_words` for as long as the
        weights don't change. Weights that are trained keep none.

        # Parameters

        ids : `torch.Tensor`
            Shape `(words, characters)`.
        """
        with torch.no_grad():
            distinct = UniqueWords.of(ids).ids
            self._cache.pin(distinct, list(self.parameters()), self.encode_distinct)

    def forget_words(self) -> None:
        """
        Lets go of all that was computed once and is kept from batch to batch. It is needed only
        after writes to frozen weights through `.data`, of which not all are seen.
        """
        self._cache.clear()
        for module in self.modules():
            if isinstance(module, Linear):
                module.forget_product()

    def encode_distinct(self, ids: torch.Tensor) -> torch.Tensor:
        """
        As `encode_words`, but that every word is taken for a new one.

        # Parameters

        ids : `torch.Tensor`
            Shape `(distinct, characters)`.

        # Returns

        `torch.Tensor`
            Shape `(distinct, dim)`.
        """
        if len(ids) == 0:
            return self._end.new_zeros(0, self.dim, dtype=self.convolution.embedding.weight.dtype)
        order = lengths(ids).argsort()
        encoded = [self._encode_sorted(ids[part].long()) for part in order.split(WORDS_AT_ONCE)]
        return torch.cat(encoded)[order.argsort()]

    def _check_shape(self, ids: torch.Tensor, *axes: str) -> None:
        """Explains ids of another shape."""
        if ids.dim() != len(axes) + 1 or ids.size(-1) != self.max_characters_per_token:
            raise ValueError(
                f"expected the ids of characters in the shape ({', '.join(axes)}, "
                f"{self.max_characters_per_token}), but got the shape {tuple(ids.shape)}"
            )

    def _vectors_of(self, ids: torch.Tensor) -> torch.Tensor:
        """As `encode_distinct`, but what is known is not encoded again where it is frozen."""
        weights = list(self.parameters())
        if torch.is_grad_enabled() and any(weight.requires_grad for weight in weights):
            return self.encode_distinct(ids)
        return self._cache.look_up(ids, weights, self.encode_distinct)

    def _encode_sorted(self, ids: torch.Tensor) -> torch.Tensor:
        """The vectors of words in order of their lengths, shape `(words, dim)`."""
        num_words = len(ids)
        missing = -num_words % WORDS_TOGETHER
        # Empty words, the shortest ones, bring the products' rows to a multiple.
        ids = torch.cat([ids.new_full((missing, ids.size(1)), PADDING_ID), ids])
        vectors = self.convolution(ids)
        for highway in self.highways:
            vectors = highway(vectors)
        return self.projection(vectors)[missing:]
