"""What is prepared once from frozen weights, until they change."""

from typing import Callable, Dict, Generic, List, Optional, Sequence, Tuple, TypeVar

import torch

SAMPLE_SIZE = 64
"""How many numbers of a tensor stand for all of them where it is checked for a change."""

NO_VERSION = -1
"""Stands for the version of a tensor that has none."""


class Fingerprint:
    """
    Tells whether tensors are what they were: the same storage, type and place, not written to as
    far as PyTorch's version counters know, and, because writes through `.data` pass those by, with
    the same numbers at `SAMPLE_SIZE` evenly spread places. Tensors made in inference mode, which
    count no versions, never match.

    # Parameters

    tensors : `Sequence[torch.Tensor]`
        The tensors as they are now.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._tensors: List[Tuple[int, int, torch.dtype, torch.device]] = _marks(tensors)
        self._samples = _samples(tensors)

    def matches(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether `tensors` are still those that the fingerprint was taken of."""
        marks = _marks(tensors)
        if any(version == NO_VERSION for _, version, _, _ in marks):
            return False
        return self._tensors == marks and all(map(torch.equal, self._samples, _samples(tensors)))


def _marks(tensors: Sequence[torch.Tensor]) -> List[Tuple[int, int, torch.dtype, torch.device]]:
    """What can be known of tensors without reading them."""
    return [
        (
            tensor.data_ptr(),
            NO_VERSION if tensor.is_inference() else tensor._version,
            tensor.dtype,
            tensor.device,
        )
        for tensor in tensors
    ]


def _samples(tensors: Sequence[torch.Tensor]) -> List[torch.Tensor]:
    """
    Copies of evenly spread numbers of each tensor, those of one kind as one: to compare them, the
    processor has to wait for a GPU, once for each kind.
    """
    by_kind: Dict[Tuple[torch.device, torch.dtype], List[torch.Tensor]] = {}
    for tensor in tensors:
        by_kind.setdefault((tensor.device, tensor.dtype), []).append(_sample(tensor))
    return list(map(torch.cat, by_kind.values()))


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Evenly spread numbers of a tensor, as a view."""
    flat = tensor.detach().flatten()
    # An odd distance: rows often have a power of two of numbers, and an even one would meet the
    # same few columns in each of them.
    return flat[:: flat.numel() // SAMPLE_SIZE | 1]


Derived = TypeVar("Derived")


def are_frozen(weights: Sequence[torch.Tensor]) -> bool:
    """
    # Returns

    `bool`
        Whether what is computed from a module's weights may be kept: there are some, and none is
        trained. A module that a wrapper has split among devices has none of its own.
    """
    return bool(weights) and not any(weight.requires_grad for weight in weights)


class FrozenWeightCache(Generic[Derived]):
    """
    Keeps what was derived from weights for as long as they stay as they are.

    Weights that are trained are never trusted to stay: from them it is derived anew at every call.
    Copies and pickles of an instance start empty.
    """

    def __init__(self) -> None:
        # In one piece, so that threads never see the half of a change.
        self._kept: Optional[Tuple[torch.dtype, Fingerprint, Derived]] = None

    def of(
        self,
        weights: Sequence[torch.Tensor],
        dtype: torch.dtype,
        derive: Callable[[], Derived],
    ) -> Derived:
        """
        # Parameters

        weights : `Sequence[torch.Tensor]`
            All that `derive` depends on, but `dtype`.
        dtype : `torch.dtype`
            The precision of what is derived.
        derive : `Callable[[], Derived]`
            Called if it is not known what it gives.

        # Returns

        `Derived`
            What `derive` gives, or gave.
        """
        if any(weight.requires_grad for weight in weights):
            self.forget()
            return derive()
        before = self._kept
        if before is not None:
            kept_dtype, fingerprint, kept = before
            if kept_dtype == dtype and fingerprint.matches(weights):
                return kept
        fingerprint, derived = Fingerprint(weights), derive()
        self._kept = (dtype, fingerprint, derived)
        return derived

    def forget(self) -> None:
        """Lets go of what is kept."""
        self._kept = None

    def __deepcopy__(self, _: object) -> "FrozenWeightCache[Derived]":
        return type(self)()

    def __reduce__(self) -> Tuple[type, Tuple[()]]:
        return type(self), ()
