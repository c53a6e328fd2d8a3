"""Encodes words by their characters: convolutions, highway layers, a projection."""

import threading
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.alphabet import (
    CHARACTERS_PER_TOKEN,
    MAX_CHARACTERS_PER_TOKEN,
    NUM_BATCH_IDS,
    PADDING_ID,
    sentence_marks,
)
from elmo_scratch.kernels import FrozenWeightCache, Linear, are_frozen, precision_of
from elmo_scratch.modules.sequences import add_boundaries
from elmo_scratch.modules.token_encoders.char_convolution import (
    ACTIVATIONS,
    CharacterConvolution,
    Highway,
    lengths,
)
from elmo_scratch.modules.token_encoders.token_encoder import EncodedTokens, TokenEncoder, check_ids


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


class WordTable:
    """
    The vectors of up to `capacity` words, and of pinned ones. When it is full, the oldest words are
    evicted; pinned words never are.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.num_pinned = 0
        self._places: Dict[bytes, int] = {}
        self._keys: List[bytes] = []  # by row, pinned words first
        self._next = 0  # counted from the first row after the pinned words
        self._vectors: Optional[torch.Tensor] = None

    def find(
        self, keys: Sequence[bytes], device: torch.device
    ) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        """
        Which words are new, shape `(words,)`, on `device`, and the vectors of the others in their
        order; `None` if nothing is known.
        """
        found = [self._places.get(key, -1) for key in keys]
        places = torch.tensor(found, dtype=torch.long, device="cpu")
        is_new = places < 0
        known = None if self._vectors is None else self._vectors[places[~is_new].to(device)]
        return is_new.to(device), known

    def add(self, keys: List[bytes], vectors: torch.Tensor) -> None:
        """
        Adds words, evicting the oldest if there is no room. Another thread may have added them
        already.
        """
        new = {key: row for row, key in enumerate(keys) if key not in self._places}
        claimed = list(new)[: self.capacity]
        places: List[int] = []
        for key in claimed:
            place = self.num_pinned + self._next
            if place == len(self._keys):
                self._keys.append(key)
            else:
                del self._places[self._keys[place]]
                self._keys[place] = key
            self._places[key] = place
            places.append(place)
            self._next = (self._next + 1) % self.capacity
        self._write(places, vectors[[new[key] for key in claimed]])

    def pin(self, keys: List[bytes], compute: Callable[[List[int]], torch.Tensor]) -> None:
        """
        Adds words that are never evicted, and drops those that are not pinned. `compute` gives the
        vectors of the words with these places in `keys`.
        """
        for key in self._keys[self.num_pinned :]:
            del self._places[key]
        del self._keys[self.num_pinned :]
        self._next = 0
        new = [place for place, key in enumerate(keys) if key not in self._places]
        vectors = compute(new)
        places = range(self.num_pinned, self.num_pinned + len(new))
        self.num_pinned += len(new)
        self._keys += [keys[place] for place in new]
        self._places.update(zip(self._keys[places.start :], places))
        self._write(places, vectors)

    def _write(self, places: Sequence[int], vectors: torch.Tensor) -> None:
        """Writes vectors into rows, which are added as needed."""
        # A table made in inference mode could not be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            table = self._vectors
            if table is None:
                table = vectors.new_empty(0, vectors.size(1))
            room = len(table)
            if len(self._keys) > room:
                # Doubled, so that growing stays cheap and a short text takes little memory.
                grown = min(self.num_pinned + self.capacity, max(2 * room, len(self._keys)))
                table = torch.cat([table, table.new_empty(grown - room, table.size(1))])
            rows = torch.tensor(places, dtype=torch.long, device="cpu")
            table[rows.to(vectors.device)] = vectors.detach()
            self._vectors = table


class WordVectorCache:
    """
    Keeps word vectors from batch to batch. It returns exactly the vectors that were computed
    before, and is cleared as soon as the weights change. Writes through `.data` are detected only
    as far as `FrozenWeightCache` sees them: after one that changes a few numbers call
    `CharCnnEncoder.forget_words`.

    Copies and pickles start empty. Threads may share one.

    # Parameters

    capacity : `int`
        How many words to keep besides pinned ones; 0 for none.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._tables = FrozenWeightCache[WordTable]()
        # Not held while vectors are computed, except for pinned words.
        self._lock = threading.RLock()

    def look_up(
        self,
        ids: torch.Tensor,
        weights: Sequence[torch.Tensor],
        compute: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """
        The vectors of words, `(words, characters)` → `(words, dim)`, from the cache or by
        `compute`, which depends on `weights` only. Vectors of weights that are trained are not
        kept. A word that occurs twice is computed twice.
        """
        if not are_frozen(weights):
            self.clear()
            return compute(ids)
        with self._lock:
            table = self._table(weights)
            if table.capacity + table.num_pinned == 0:
                return compute(ids)
            keys = _keys(ids)
            is_new, known = table.find(keys, ids.device)
        if known is not None and not is_new.any():
            return known
        vectors = compute(ids[is_new])
        all_vectors = vectors.new_empty(len(keys), vectors.size(1))
        all_vectors[is_new] = vectors
        if known is not None:
            all_vectors[~is_new] = known
        with self._lock, self._nothing_half_done():
            # If the weights have changed meanwhile, the table is no longer in use.
            table.add([key for key, new in zip(keys, is_new.tolist()) if new], vectors)
        return all_vectors

    def pin(
        self,
        ids: torch.Tensor,
        weights: Sequence[torch.Tensor],
        compute: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        """
        Keeps the vectors of words, shape `(words, characters)`, until the weights change. Words
        that are not pinned are dropped. The other arguments are those of `look_up`.
        """
        if not are_frozen(weights):
            self.clear()
            return
        with self._lock, self._nothing_half_done():
            self._table(weights).pin(_keys(ids), lambda places: compute(ids[places]))

    def clear(self) -> None:
        """Drops everything."""
        with self._lock:
            self._tables.forget()

    def _table(self, weights: Sequence[torch.Tensor]) -> WordTable:
        """The table of vectors computed with these weights, a new one if they have changed."""
        return self._tables.of(weights, precision_of(weights), lambda: WordTable(self.capacity))

    @contextmanager
    def _nothing_half_done(self) -> Iterator[None]:
        """
        Clears the cache on errors, for example on a GPU without free memory: a word gets its row
        before its vector is written there, so the row might hold another vector.
        """
        try:
            yield
        except BaseException:
            self.clear()
            raise

    def __deepcopy__(self, _: object) -> "WordVectorCache":
        return type(self)(self.capacity)

    def __reduce__(self) -> Tuple[type, Tuple[int]]:
        return type(self), (self.capacity,)


def _keys(ids: torch.Tensor) -> List[bytes]:
    """The dictionary key of each word."""
    return [row.tobytes() for row in ids.to("cpu", torch.int16).numpy()]


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
        self.highways = torch.nn.ModuleList()
        for _ in range(num_highway):
            self.highways.append(Highway(num_filters))
        self.projection = Linear(num_filters, dim) if num_filters != dim else torch.nn.Identity()
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
        range, words without `max_characters_per_token` ids, and real tokens that don't come first
        in each row.
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
            return self._end.new_zeros(0, self.dim, dtype=self.convolution.embedding.weight.dtype)
        order = lengths(ids).argsort()
        encoded: List[torch.Tensor] = []
        for part in order.split(WORDS_AT_ONCE):
            words, missing = ids[part].long(), -len(part) % WORDS_TOGETHER
            # Pads the number of words to a multiple, with empty words, which are the shortest.
            vectors = self.convolution(
                torch.cat([words.new_full((missing, words.size(1)), PADDING_ID), words])
            )
            for highway in self.highways:
                vectors = highway(vectors)
            encoded.append(self.projection(vectors)[missing:])
        return torch.cat(encoded)[order.argsort()]

    def _check(self, ids: torch.Tensor, *axes: str) -> None:
        """Raises a `ValueError` for ids of another shape or out of range."""
        if ids.dim() != len(axes) + 1 or ids.size(-1) != self.max_characters_per_token:
            raise ValueError(
                f"expected the ids of characters in the shape ({', '.join(axes)}, "
                f"{self.max_characters_per_token}), but got the shape {tuple(ids.shape)}"
            )
        check_ids(ids, "characters", NUM_BATCH_IDS)
