"""Ways in which weights that were frozen change after all, for what is kept of them."""

from typing import Callable

import pytest
import torch

from elmo_scratch.native_library import INSTRUCTIONS, Instructions

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

needs_onednn = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="only packed products promise equal bits"
)

needs_equal_rows = pytest.mark.skipif(
    torch.cpu._is_amx_tile_supported() and INSTRUCTIONS < Instructions.TILES,
    reason="with tiles oneDNN sums rounded numbers in an order that the number of rows decides",
)
"""Of products in bfloat16."""
