"""Caches the vectors of spelled words from batch to batch."""

import threading
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from elmo_scratch.kernels import FrozenWeightCache, are_frozen, precision_of


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
