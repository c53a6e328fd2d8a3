"""A cache of values derived from frozen weights, valid until the weights change."""

from typing import Callable, Dict, Generic, Hashable, List, Optional, Sequence, Tuple, TypeVar

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
        self._versions: List[int] = []
        self._places: List[Tuple[int, torch.dtype, torch.device]] = []
        # One tensor for each device and type: on a GPU each comparison waits for the device.
        samples: Dict[Tuple[torch.device, torch.dtype], List[torch.Tensor]] = {}
        for tensor in tensors:
            device, dtype = tensor.device, tensor.dtype
            self._versions.append(NO_VERSION if tensor.is_inference() else tensor._version)
            self._places.append((tensor.data_ptr(), dtype, device))
            flat = tensor.detach().flatten()
            # An odd stride: row lengths are often powers of two, and an even stride would hit the
            # same few columns in every row.
            sample = flat[:: flat.numel() // SAMPLE_SIZE | 1]
            samples.setdefault((device, dtype), []).append(sample)
        self._samples = list(map(torch.cat, samples.values()))

    def matches(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether `tensors` are still the ones that the fingerprint was taken of."""
        now = Fingerprint(tensors)
        return (
            NO_VERSION not in now._versions
            and now._versions == self._versions
            and now._places == self._places
            and all(map(torch.equal, now._samples, self._samples))
        )


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
        self._kept: Optional[Tuple[Hashable, Fingerprint, Derived]] = None

    def of(
        self,
        weights: Sequence[torch.Tensor],
        settings: Hashable,
        derive: Callable[[], Derived],
    ) -> Derived:
        """
        The value that `derive` gives for these weights, from the cache if possible.

        # Parameters

        weights : `Sequence[torch.Tensor]`
            The tensors that `derive` depends on.
        settings : `Hashable`
            All else that it depends on, such as the precision of the value.
        derive : `Callable[[], Derived]`
            Computes the value.
        """
        if any(weight.requires_grad for weight in weights):
            self.forget()
            return derive()
        before = self._kept
        if before is not None:
            kept_settings, fingerprint, kept = before
            if kept_settings == settings and fingerprint.matches(weights):
                return kept
        fingerprint, derived = Fingerprint(weights), derive()
        self._kept = (settings, fingerprint, derived)
        return derived

    def forget(self) -> None:
        """Drops the value."""
        self._kept = None

    def __deepcopy__(self, _: object) -> "FrozenWeightCache[Derived]":
        return type(self)()

    def __reduce__(self) -> Tuple[type, Tuple[()]]:
        return type(self), ()
