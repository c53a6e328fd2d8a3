"""A cache of word vectors, kept from batch to batch."""

import threading
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from elmo_scratch.kernels import Fingerprint, are_frozen, precision_of


class WordVectorCache:
    """
    A bounded cache of word vectors. It returns exactly the vectors that were computed before, and
    is cleared as soon as the weights change. Writes through `.data` are detected only as far as
    `Fingerprint` sees them: after one that changes a few numbers call
    `CharCnnEncoder.forget_words`.

    When it is full, the oldest words are evicted; pinned words never are. Copies and pickles start
    empty. Threads may share one.

    # Parameters

    capacity : `int`
        How many words to keep besides pinned ones; 0 for none.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        # Not held while vectors are computed, except for pinned words.
        self._lock = threading.RLock()
        self._places: Dict[bytes, int] = {}
        self._keys: List[bytes] = []  # by row, pinned words first
        self._num_pinned = 0
        self._next = 0  # counted from the first row after the pinned words
        self._vectors: Optional[torch.Tensor] = None
        self._fingerprint: Optional[Fingerprint] = None
        self._precision: Optional[torch.dtype] = None

    def look_up(
        self,
        ids: torch.Tensor,
        weights: Sequence[torch.Tensor],
        compute: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """
        The vectors of words, `(words, characters)` → `(words, dim)`, from the cache or by
        `compute`, which depends on `weights` only. A word that occurs twice is computed twice.
        """
        with self._lock:
            is_kept = self._is_of(weights)
            if is_kept:
                fingerprint, keys = self._fingerprint, _keys(ids)
                places = _on_host([self._places.get(key, -1) for key in keys])
                is_new = places < 0
                known: Optional[torch.Tensor] = None
                if self._vectors is not None:
                    known = self._vectors[places[~is_new].to(ids.device)]
        if not is_kept:
            return compute(ids)
        if known is not None and not is_new.any():
            return known
        vectors = compute(ids[is_new.to(ids.device)])
        all_vectors = vectors.new_empty(len(keys), vectors.size(1))
        all_vectors[is_new.to(ids.device)] = vectors
        if known is not None:
            all_vectors[~is_new.to(ids.device)] = known
        with self._lock:
            # Another thread may have found that the weights have changed.
            if self._fingerprint is fingerprint:
                self._remember([key for key, new in zip(keys, is_new.tolist()) if new], vectors)
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
        with self._lock:
            if not self._is_of(weights, pins=True):
                return
            for key in self._keys[self._num_pinned :]:
                del self._places[key]
            del self._keys[self._num_pinned :]
            self._next = 0
            keys = _keys(ids)
            is_new = _on_host([key not in self._places for key in keys]).bool()
            new_keys = [key for key, new in zip(keys, is_new.tolist()) if new]
            vectors = compute(ids[is_new.to(ids.device)])
            with self._nothing_half_done():
                self._num_pinned += len(new_keys)
                places = _on_host(range(len(self._keys), self._num_pinned))
                self._keys += new_keys
                self._places.update(zip(new_keys, places.tolist()))
                self._lay(places, vectors)

    def clear(self) -> None:
        """Drops everything."""
        with self._lock:
            self._places, self._keys = {}, []
            self._num_pinned = self._next = 0
            self._vectors = self._fingerprint = None

    def _is_of(self, weights: Sequence[torch.Tensor], pins: bool = False) -> bool:
        """Whether words can be kept. Drops vectors computed with other weights."""
        if not are_frozen(weights):
            self.clear()
            return False
        precision = precision_of(weights)
        is_known = self._fingerprint is not None and self._fingerprint.matches(weights)
        if not is_known or self._precision != precision:
            self.clear()
            self._fingerprint, self._precision = Fingerprint(weights), precision
        return pins or self.capacity + self._num_pinned > 0

    def _remember(self, keys: List[bytes], vectors: torch.Tensor) -> None:
        """
        Adds words, evicting the oldest if there is no room. Another thread may have added them
        already.
        """
        new = {key: number for number, key in enumerate(keys) if key not in self._places}
        claimed = list(new)[: self.capacity]
        with self._nothing_half_done():
            self._lay(self._claim(claimed), vectors[[new[key] for key in claimed]])

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

    def _lay(self, places: torch.Tensor, vectors: torch.Tensor) -> None:
        """Writes vectors into the table, which grows as needed."""
        # A table made in inference mode could not be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            table = (
                vectors.new_empty(0, vectors.size(1)) if self._vectors is None else self._vectors
            )
            room, most = len(table), self._num_pinned + self.capacity
            if len(self._keys) > room:
                # Doubled, so that growing stays cheap and a short text takes little memory.
                grown = min(most, max(2 * room, len(self._keys)))
                table = torch.cat([table, table.new_empty(grown - room, table.size(1))])
            table[places.to(vectors.device)] = vectors.detach()
            self._vectors = table

    def _claim(self, keys: List[bytes]) -> torch.Tensor:
        """Assigns rows to new words, shape `(words,)`, evicting older words."""
        places = []
        for key in keys:
            place = self._num_pinned + self._next
            if place == len(self._keys):
                self._keys.append(key)
            else:
                del self._places[self._keys[place]]
                self._keys[place] = key
            self._places[key] = place
            places.append(place)
            self._next = (self._next + 1) % self.capacity
        return _on_host(places)

    def __deepcopy__(self, _: object) -> "WordVectorCache":
        return type(self)(self.capacity)

    def __reduce__(self) -> Tuple[type, Tuple[int]]:
        return type(self), (self.capacity,)


def _on_host(numbers: Sequence[int]) -> torch.Tensor:
    """A tensor of integers on the CPU, whatever PyTorch's default device is."""
    return torch.tensor(numbers, dtype=torch.long, device="cpu")


def _keys(ids: torch.Tensor) -> List[bytes]:
    """The dictionary key of each word."""
    return [row.tobytes() for row in ids.to("cpu", torch.int16).numpy()]
