"""Whether tensors are still what they were."""

from typing import Dict, List, Sequence, Tuple

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
