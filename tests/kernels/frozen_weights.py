"""Ways in which weights that were frozen change after all, for what is kept of them."""

from typing import Callable

import pytest
import torch

from elmo_scratch.kernels.linear import rows_are_independent

Change = Callable[[torch.nn.Module, torch.nn.Module], None]
"""Gives the first module the weights of the second."""


def in_place(module: torch.nn.Module, other: torch.nn.Module) -> None:
    with torch.no_grad():
        for weight, new in zip(module.parameters(), other.parameters(), strict=True):
            weight.copy_(new)


def in_place_in_inference_mode(module: torch.nn.Module, other: torch.nn.Module) -> None:
    with torch.inference_mode():
        in_place(module, other)


def in_place_through_data(module: torch.nn.Module, other: torch.nn.Module) -> None:
    for weight, new in zip(module.parameters(), other.parameters(), strict=True):
        weight.data.copy_(new)


def by_other_data(module: torch.nn.Module, other: torch.nn.Module) -> None:
    for weight, new in zip(module.parameters(), other.parameters(), strict=True):
        weight.data = new.detach().clone()


def by_load_state_dict(module: torch.nn.Module, other: torch.nn.Module) -> None:
    module.load_state_dict(other.state_dict())


def by_assigned_state_dict(module: torch.nn.Module, other: torch.nn.Module) -> None:
    module.load_state_dict(other.state_dict(), assign=True)
    module.requires_grad_(False)


CHANGES = [
    in_place,
    in_place_in_inference_mode,
    in_place_through_data,
    by_other_data,
    by_load_state_dict,
    by_assigned_state_dict,
]

each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)


def _needs_independent_rows(dtype: torch.dtype) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not rows_are_independent(dtype),
        reason=f"on this machine rows of products in {dtype} depend on how many there are",
    )


needs_independent_rows = _needs_independent_rows(torch.float32)


def as_promised(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether both are equal: to the bit where this machine promises it, else within rounding."""
    if rows_are_independent(torch.float32):
        return torch.equal(one, other)
    return torch.allclose(one, other, rtol=0, atol=1e-6)


EACH_INDEPENDENT_DTYPE = [
    pytest.param(dtype, marks=_needs_independent_rows(dtype))
    for dtype in (torch.float32, torch.bfloat16)
]
"""The precisions in which rows of products are promised to be equal to the bit."""

EACH_INDEPENDENT_PRECISION = [
    pytest.param(name, marks=_needs_independent_rows(dtype))
    for name, dtype in [("float32", torch.float32), ("bfloat16", torch.bfloat16)]
]
"""Their names in configs."""
