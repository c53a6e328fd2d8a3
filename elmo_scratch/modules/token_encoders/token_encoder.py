"""The base class of token encoders, and the check of their ids."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, Optional

import torch
from allennlp.common import Registrable

ID_TYPES = (torch.int16, torch.int32, torch.int64)
"""Types that have room for all character ids."""


def check_ids(ids: torch.Tensor, kind: str, num_ids: Optional[int] = None) -> None:
    """
    Raises a `ValueError` unless ids have one of `ID_TYPES`, and are in `range(num_ids)` if that is
    given. `kind` names them in the message.
    """
    if ids.dtype not in ID_TYPES:
        raise ValueError(
            f"expected ids of {kind} of the type int16, int32 or int64, but got {ids.dtype}"
        )
    if num_ids is None or ids.numel() == 0:
        return
    lowest, highest = int(ids.min()), int(ids.max())
    if not 0 <= lowest <= highest < num_ids:
        raise ValueError(
            f"expected ids of {kind} from 0 to {num_ids - 1}, but got ids from {lowest} to "
            f"{highest}"
        )


class EncodedTokens(NamedTuple):
    """
    The token layer of a biLM.

    # Parameters

    vectors : `torch.Tensor`
        Shape `(batch, positions, dim)`.
    mask : `torch.BoolTensor`
        Shape `(batch, positions)`.
    """

    vectors: torch.Tensor
    mask: torch.Tensor


class TokenEncoder(torch.nn.Module, Registrable, ABC):
    """
    Turns the ids of tokens into vectors that don't depend on context, and adds the vectors of the
    sentence boundaries. Abstract.

    # Parameters

    dim : `int`
        The size of a vector.

    # Raises

    ValueError
        If `dim` is below 1.
    """

    reads_characters: ClassVar[bool]
    """Whether a token is given by the ids of its characters."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim < 1:
            raise ValueError(f"expected `dim` of 1 or more, but got {dim}")
        self.dim = dim

    @abstractmethod
    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> EncodedTokens:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens)`, or `(batch, tokens, characters)` for encoders of characters.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`; real tokens come first in each row.

        # Returns

        `EncodedTokens`
            Vectors of shape `(batch, tokens + 2, dim)`.
        """

    @abstractmethod
    def encode_words(self, ids: torch.Tensor) -> torch.Tensor:
        """Encodes words alone: `(words,)`, or `(words, characters)`, → `(words, dim)`."""
