"""Ids of sentences on more axes than one."""

from typing import NamedTuple, Optional

import torch


class FlatSentences(NamedTuple):
    """
    Ids with one axis for all sentences.

    # Parameters

    inputs : `torch.Tensor`
        Shape `(batch, tokens, characters)` or `(batch, tokens)`.
    word_inputs : `Optional[torch.Tensor]`
        Shape `(batch, tokens)`.
    axes : `torch.Size`
        The axes that `batch` was before.
    """

    inputs: torch.Tensor
    word_inputs: Optional[torch.Tensor]
    axes: torch.Size

    @classmethod
    def of(
        cls, inputs: torch.Tensor, word_inputs: Optional[torch.Tensor], id_axes: int
    ) -> "FlatSentences":
        """
        # Parameters

        inputs, word_inputs
            As in `Elmo.forward`.
        id_axes : `int`
            How many axes a batch of `inputs` has.

        # Returns

        `FlatSentences`
            With all axes before the last `id_axes - 1` as one.

        # Raises

        ValueError
            If `inputs` is no tensor or has fewer axes.
        """
        if not isinstance(inputs, torch.Tensor):
            raise ValueError(
                "expected ids in a tensor, as `batch_to_ids` makes it, but got a "
                f"{type(inputs).__name__}"
            )
        if inputs.dim() < id_axes:
            form = "(batch, tokens, characters)" if id_axes == 3 else "(batch, tokens)"
            raise ValueError(f"expected ids in the shape {form}, but got {tuple(inputs.shape)}")
        axes = inputs.shape[: inputs.dim() - id_axes + 1]
        if word_inputs is not None:
            word_inputs = word_inputs.flatten(0, -2)
        return cls(inputs.flatten(0, len(axes) - 1), word_inputs, axes)
