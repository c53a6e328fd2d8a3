"""What is computed once from weights that don't change."""

from typing import Callable, Generic, List, Optional, Sequence, Tuple, TypeVar

import torch

Derived = TypeVar("Derived")

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
        self._samples = [_sample(tensor).clone() for tensor in tensors]

    def matches(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether `tensors` are still those that the fingerprint was taken of."""
        marks = _marks(tensors)
        if any(version == NO_VERSION for _, version, _, _ in marks):
            return False
        return self._tensors == marks and all(
            torch.equal(sample, _sample(tensor)) for sample, tensor in zip(self._samples, tensors)
        )


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


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """Evenly spread numbers of a tensor, as a view."""
    flat = tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // SAMPLE_SIZE)]


class FrozenProducts(Generic[Derived]):
    """
    Keeps what was derived from weights for as long as they stay as they are.

    Weights that are trained are never trusted to stay: from them it is derived anew at every call.
    Copies and pickles of an instance start empty.
    """

    def __init__(self) -> None:
        self._dtype: Optional[torch.dtype] = None
        self._fingerprint: Optional[Fingerprint] = None
        self._derived: Optional[Derived] = None

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
        if self._derived is None or self._dtype != dtype or not self._matches(weights):
            self._derived = derive()
            self._dtype = dtype
            self._fingerprint = Fingerprint(weights)
        return self._derived

    def forget(self) -> None:
        """Lets go of what is kept."""
        self._derived = self._fingerprint = None

    def _matches(self, weights: Sequence[torch.Tensor]) -> bool:
        return self._fingerprint is not None and self._fingerprint.matches(weights)

    def __deepcopy__(self, _: object) -> "FrozenProducts[Derived]":
        return type(self)()

    def __reduce__(self) -> Tuple[type, Tuple[()]]:
        return type(self), ()
