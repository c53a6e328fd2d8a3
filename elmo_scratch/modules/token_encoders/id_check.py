"""Ids as token encoders take them."""

import torch

ID_TYPES = (torch.int16, torch.int32, torch.int64)
"""Types that have room for every id of a character."""


def check_id_type(ids: torch.Tensor, kind: str) -> None:
    """
    # Parameters

    ids : `torch.Tensor`
        Ids of any shape.
    kind : `str`
        What they number, for error messages.

    # Raises

    ValueError
        If their type has no room for ids, or has numbers that are none.
    """
    if ids.dtype not in ID_TYPES:
        raise ValueError(
            f"expected ids of {kind} of the type int16, int32 or int64, but got {ids.dtype}"
        )


def check_ids(ids: torch.Tensor, kind: str, num_ids: int) -> None:
    """
    # Parameters

    ids : `torch.Tensor`
        Ids of any shape.
    kind : `str`
        What they number, for error messages.
    num_ids : `int`
        How many ids there are, padding included.

    # Raises

    ValueError
        If they are of a wrong type, or one is negative or too large.
    """
    check_id_type(ids, kind)
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < num_ids:
        raise ValueError(
            f"expected ids of {kind} from 0 to {num_ids - 1}, but got ids from "
            f"{int(ids.min())} to {int(ids.max())}"
        )
