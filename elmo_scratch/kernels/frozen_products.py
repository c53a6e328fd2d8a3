"""What is computed once from weights that don't change."""

from typing import Callable, Generic, Optional, Sequence, Tuple, TypeVar

import torch

from elmo_scratch.kernels.fingerprint import Fingerprint

Derived = TypeVar("Derived")


def are_frozen(weights: Sequence[torch.Tensor]) -> bool:
    """
    # Returns

    `bool`
        Whether what is computed from a module's weights may be kept: there are some, and none is
        trained. A module that a wrapper has split among devices has none of its own.
    """
    return bool(weights) and not any(weight.requires_grad for weight in weights)


class FrozenProducts(Generic[Derived]):
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

    def __deepcopy__(self, _: object) -> "FrozenProducts[Derived]":
        return type(self)()

    def __reduce__(self) -> Tuple[type, Tuple[()]]:
        return type(self), ()
