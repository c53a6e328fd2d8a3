"""The base class of token encoders to which a word is a row of ids: it encodes each word once."""

import threading
from abc import abstractmethod
from contextlib import contextmanager
from typing import Callable, ClassVar, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_scratch.kernels import FrozenWeightCache, Linear, are_frozen, precision_of
from elmo_scratch.modules.sequences import add_boundaries
from elmo_scratch.modules.token_encoders.token_encoder import EncodedTokens, TokenEncoder


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
    `SpelledWordEncoder.forget_words`.

    Copies and pickles start empty. Threads may share one.

    # Parameters

    capacity : `int`
        How many words to keep besides pinned ones; 0 for none.
    id_type : `torch.dtype`, optional (default = `torch.int16`)
        The type that has room for all ids.
    """

    def __init__(self, capacity: int, id_type: torch.dtype = torch.int16) -> None:
        self.capacity = capacity
        self._id_type = id_type
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
            keys = self._keys_of(ids)
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
            self._table(weights).pin(self._keys_of(ids), lambda places: compute(ids[places]))

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
        return type(self)(self.capacity, self._id_type)

    def __reduce__(self) -> Tuple[type, Tuple[int, torch.dtype]]:
        return type(self), (self.capacity, self._id_type)

    def _keys_of(self, ids: torch.Tensor) -> List[bytes]:
        """The dictionary key of each word."""
        return [row.tobytes() for row in ids.to("cpu", self._id_type).numpy()]


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

FEW_WORDS_TOGETHER = 4
"""
Fewer words than `WORDS_TOGETHER`, as a single sentence has, are padded to a multiple of this: more
rows would take longer, and of one or two oneDNN makes slower products.
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
            words = ids[part].long()
            together = FEW_WORDS_TOGETHER if len(words) < WORDS_TOGETHER else WORDS_TOGETHER
            missing = -len(words) % together
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
