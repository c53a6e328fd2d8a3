"""What a biLM makes of sentences, and of windows of running text."""

from typing import NamedTuple

import torch

from elmo_scratch.kernels.lstm.run import LstmState


class BiLmOutput(NamedTuple):
    """
    What a biLM knows about a batch.

    # Parameters

    layers : `torch.Tensor`
        Shape `(layers, batch, positions, width)`: the token layer (its vectors twice, side by side)
        and the LSTM layers, the left-to-right half first. Zero where `mask` is `False`.
    mask : `torch.BoolTensor`
        Shape `(batch, positions)`.
    """

    layers: torch.Tensor
    mask: torch.Tensor


class ReadSentences(NamedTuple):
    """
    What a biLM makes of sentences of which it was told where they start.

    # Parameters

    output : `BiLmOutput`
        What it knows about them.
    state : `LstmState`
        Of shape `(layers, batch, ...)`, over the layers of both directions: where each sentence
        ends.
    """

    output: BiLmOutput
    state: LstmState


class ReadWindows(NamedTuple):
    """
    What a biLM makes of windows of running text.

    # Parameters

    left_to_right, right_to_left : `torch.Tensor`
        Shape `(batch, positions, dim)`: the last layer of each direction, in its own order of
        reading. Zero where the mask is `False`.
    state : `LstmState`
        Of shape `(layers, batch, ...)`: where each row ends.
    """

    left_to_right: torch.Tensor
    right_to_left: torch.Tensor
    state: LstmState
