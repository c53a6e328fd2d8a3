"""Vectors of words that have been seen, kept from batch to batch."""

from typing import Callable, Dict, List, Optional, Sequence, Tuple

import torch

from elmo_scratch.modules.products.frozen_products import Fingerprint


class WordVectorCache:
    """
    Remembers the vectors of a bounded number of words. What it gives back are the very numbers
    that were computed once. As soon as the weights behind them change, it forgets them all.

    When it is full, the words that came first make room for those that come. Copies and pickles
    start empty.

    # Parameters

    capacity : `int`
        How many words to remember; 0 for none.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._places: Dict[bytes, int] = {}
        self._keys: List[bytes] = []  # by place
        self._next = 0
        self._vectors: Optional[torch.Tensor] = None
        self._fingerprint: Optional[Fingerprint] = None

    def look_up(
        self,
        ids: torch.Tensor,
        weights: Sequence[torch.Tensor],
        compute: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(words, characters)`: distinct words.
        weights : `Sequence[torch.Tensor]`
            All that `compute` depends on.
        compute : `Callable[[torch.Tensor], torch.Tensor]`
            From ids of this form to vectors of shape `(words, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(words, dim)`.
        """
        if self.capacity == 0 or any(weight.requires_grad for weight in weights):
            self.clear()
            return compute(ids)
        if self._fingerprint is None or not self._fingerprint.matches(weights):
            self.clear()
            self._fingerprint = Fingerprint(weights)
        keys = [row.tobytes() for row in ids.to("cpu", torch.int16).numpy()]
        places = torch.tensor([self._places.get(key, -1) for key in keys], dtype=torch.long)
        is_new = places < 0
        if self._vectors is not None and not is_new.any():
            return self._vectors[places.to(ids.device)]
        vectors = compute(ids[is_new.to(ids.device)])
        known = places[~is_new].to(ids.device)
        all_vectors = vectors.new_empty(len(keys), vectors.size(1))
        all_vectors[is_new.to(ids.device)] = vectors
        if self._vectors is not None:
            all_vectors[~is_new.to(ids.device)] = self._vectors[known]
        self._remember([key for key, new in zip(keys, is_new.tolist()) if new], vectors)
        return all_vectors

    def clear(self) -> None:
        """Forgets everything."""
        self._places, self._keys, self._next = {}, [], 0
        self._vectors = self._fingerprint = None

    def _remember(self, keys: List[bytes], vectors: torch.Tensor) -> None:
        """Puts new words where there is room, or where the oldest are."""
        keys, vectors = keys[: self.capacity], vectors[: self.capacity].detach()
        # A table made in inference mode could not be written to outside of it.
        with torch.inference_mode(False), torch.no_grad():
            self._vectors = self._grown(len(keys), vectors)
            self._vectors[self._claim(keys).to(vectors.device)] = vectors

    def _grown(self, num_new: int, like: torch.Tensor) -> torch.Tensor:
        """The table, with room for new words as far as the capacity goes."""
        table = like.new_empty(0, like.size(1)) if self._vectors is None else self._vectors
        room, needed = len(table), len(self._keys) + num_new
        if needed <= room or room == self.capacity:
            return table
        # Doubled, so that growing stays cheap and a short text takes little memory.
        grown = like.new_empty(min(self.capacity, max(2 * room, needed)), like.size(1))
        grown[:room] = table
        return grown

    def _claim(self, keys: List[bytes]) -> torch.Tensor:
        """The places of new words, shape `(words,)`; older words leave them."""
        places = []
        for key in keys:
            if len(self._keys) < self.capacity:
                self._keys.append(key)
            else:
                del self._places[self._keys[self._next]]
                self._keys[self._next] = key
            self._places[key] = self._next
            places.append(self._next)
            self._next = (self._next + 1) % self.capacity
        return torch.tensor(places, dtype=torch.long)

    def __deepcopy__(self, _: object) -> "WordVectorCache":
        return type(self)(self.capacity)

    def __reduce__(self) -> Tuple[type, Tuple[int]]:
        return type(self), (self.capacity,)
