"""A cache of values derived from frozen weights, valid until the weights change."""

from typing import Callable, Dict, Generic, List, Optional, Sequence, Tuple, TypeVar

import torch

SAMPLE_SIZE = 64
"""How many numbers of a tensor are compared to find out whether it has changed."""

NO_VERSION = -1
"""Stands for the version of a tensor that has none."""


class Fingerprint:
    """
    Tells whether tensors have changed. They match if storage, type and device are the same,
    PyTorch's version counters saw no write, and about `SAMPLE_SIZE` evenly spread numbers are
    equal; the numbers are compared because version counters miss writes through `.data`. Tensors
    made in inference mode, which have no versions, never match.

    # Parameters

    tensors : `Sequence[torch.Tensor]`
        The tensors as they are now.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self._tensors: List[Tuple[int, int, torch.dtype, torch.device]] = _marks(tensors)
        self._samples = _samples(tensors)

    def matches(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether `tensors` are still the ones that the fingerprint was taken of."""
        marks = _marks(tensors)
        if any(version == NO_VERSION for _, version, _, _ in marks):
            return False
        return self._tensors == marks and all(map(torch.equal, self._samples, _samples(tensors)))


def _marks(tensors: Sequence[torch.Tensor]) -> List[Tuple[int, int, torch.dtype, torch.device]]:
    """
    Address, version, type and device of each tensor: all that is known without reading its numbers.
    """
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
    Copies of evenly spread numbers of the tensors, one tensor per device and type. On a GPU each
    comparison waits for the device, so this waits once per type.
    """
    by_kind: Dict[Tuple[torch.device, torch.dtype], List[torch.Tensor]] = {}
    for tensor in tensors:
        by_kind.setdefault((tensor.device, tensor.dtype), []).append(_sample(tensor))
    return list(map(torch.cat, by_kind.values()))


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Evenly spread numbers of a tensor, as a view."""
    flat = tensor.detach().flatten()
    # An odd stride: row lengths are often powers of two, and an even stride would hit the same few
    # columns in every row.
    return flat[:: flat.numel() // SAMPLE_SIZE | 1]


Derived = TypeVar("Derived")


def are_frozen(weights: Sequence[torch.Tensor]) -> bool:
    """
    Whether values derived from a module's weights may be kept: it has weights, and none is trained.
    A module that a wrapper has split among devices has no weights of its own.
    """
    return bool(weights) and not any(weight.requires_grad for weight in weights)


class FrozenWeightCache(Generic[Derived]):
    """
    Keeps a value derived from weights as long as the weights don't change. From weights that are
    trained the value is derived anew at every call. Copies and pickles start empty.
    """

    def __init__(self) -> None:
        # One attribute, so that other threads never see half of a change.
        self._kept: Optional[Tuple[torch.dtype, Fingerprint, Derived]] = None

    def of(
        self,
        weights: Sequence[torch.Tensor],
        dtype: torch.dtype,
        derive: Callable[[], Derived],
    ) -> Derived:
        """
        The value that `derive` gives for these weights, from the cache if possible.

        # Parameters

        weights : `Sequence[torch.Tensor]`
            All that `derive` depends on, besides `dtype`.
        dtype : `torch.dtype`
            The precision of the value.
        derive : `Callable[[], Derived]`
            Computes the value.
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
        """Drops the value."""
        self._kept = None

    def __deepcopy__(self, _: object) -> "FrozenWeightCache[Derived]":
        return type(self)()

    def __reduce__(self) -> Tuple[type, Tuple[()]]:
        return type(self), ()
