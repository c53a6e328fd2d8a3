"""The base class of token encoders to which a word is a row of ids: it encodes each word once."""

from abc import abstractmethod
from typing import ClassVar, List, NamedTuple, Sequence, Tuple

import torch

from elmo_scratch.kernels import Linear
from elmo_scratch.modules.sequences import add_boundaries
from elmo_scratch.modules.token_encoders.token_encoder import EncodedTokens, TokenEncoder
from elmo_scratch.modules.token_encoders.word_vector_cache import WordVectorCache


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


WORDS_TOGETHER = 16
"""
Products above the convolutions have a multiple of so many words: oneDNN compiles kernels for each
number of rows, and the number of words differs in nearly every batch.
"""

WORDS_AT_ONCE = 2048
"""How many words go through the layers together: bounds memory use."""

CACHED_WORDS = 2**14
"""How many words' vectors are cached by default."""


class SpelledWordEncoder(TokenEncoder):
    """
    Encodes words that are given as rows of ids. A vector depends on the word alone. Each distinct
    word of a batch is encoded only once, and vectors are cached from batch to batch if no gradient
    is needed. Abstract.

    # Parameters

    dim : `int`
        The size of a vector.
    begin, end : `Sequence[int]`
        The ids of the marks of sentence boundaries, as many as each word has.
    cached_words : `int`
        How many words' vectors are cached; 0 caches none.

    # Raises

    ValueError
        If `dim` is below 1, or `cached_words` below 0.
    """

    reads_characters = True

    id_type: ClassVar[torch.dtype]
    """The smallest type that has room for all ids."""

    _begin: torch.Tensor
    _end: torch.Tensor

    def __init__(
        self, dim: int, *, begin: Sequence[int], end: Sequence[int], cached_words: int
    ) -> None:
        super().__init__(dim)
        if cached_words < 0:
            raise ValueError(f"expected `cached_words` of 0 or more, but got {cached_words}")
        self.register_buffer("_begin", torch.tensor(begin), persistent=False)
        self.register_buffer("_end", torch.tensor(end), persistent=False)
        self._cache = WordVectorCache(cached_words, self.id_type)

    @abstractmethod
    def lengths(self, ids: torch.Tensor) -> torch.Tensor:
        """How long words are, by which they are sorted: `(words, ids)` → `(words,)`."""

    @abstractmethod
    def encode_sorted(self, ids: torch.Tensor) -> torch.Tensor:
        """Encodes words sorted by length, shortest first: `(words, ids)` → `(words, dim)`."""

    @abstractmethod
    def check_range(self, ids: torch.Tensor) -> None:
        """Raises a `ValueError` if ids, of shape `(*, ids)`, are out of range."""

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> EncodedTokens:
        """
        Shape `(batch, tokens, characters)` → vectors `(batch, tokens + 2, dim)`. Raises a
        `ValueError` for ids out of range and words with another number of ids than marks have.
        """
        self._check(ids, "batch", "tokens")
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
        range, words with another number of ids than marks have, and real tokens that don't come
        first in each row.
        """
        self._check(words, "words")
        marks = torch.stack([self._begin, self._end]).to(words.dtype)
        vectors = self._cache.look_up(
            torch.cat([words, marks]), list(self.parameters()), self.encode_distinct
        )
        begin, end = places.new_tensor([len(words), len(words) + 1])
        bounded = add_boundaries(places, mask, begin, end)
        laid = torch.nn.functional.embedding(bounded.ids, vectors)
        return EncodedTokens(laid.masked_fill(~bounded.mask.unsqueeze(-1), 0.0), bounded.mask)

    def encode_words(self, ids: torch.Tensor) -> torch.Tensor:
        """Shape `(words, characters)` → `(words, dim)`."""
        words = UniqueWords.of(ids)
        vectors = self._cache.look_up(words.ids, list(self.parameters()), self.encode_distinct)
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
            return next(self.parameters()).new_zeros(0, self.dim)
        order = self.lengths(ids).argsort()
        encoded: List[torch.Tensor] = []
        for part in order.split(WORDS_AT_ONCE):
            words, missing = ids[part].long(), -len(part) % WORDS_TOGETHER
            # Pads the number of words to a multiple, with the shortest one.
            padded = torch.cat([words[:1].expand(missing, -1), words])
            encoded.append(self.encode_sorted(padded)[missing:])
        return torch.cat(encoded)[order.argsort()]

    def _check(self, ids: torch.Tensor, *axes: str) -> None:
        """Raises a `ValueError` for ids of another shape or out of range."""
        num_ids = len(self._begin)
        if ids.dim() != len(axes) + 1 or ids.size(-1) != num_ids:
            raise ValueError(
                f"expected the ids of characters in the shape ({', '.join(axes)}, {num_ids}), but "
                f"got the shape {tuple(ids.shape)}"
            )
        self.check_range(ids)
