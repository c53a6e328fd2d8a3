"""The bidirectional language model's network: a token encoder and two stacks of LSTMs."""

from typing import NamedTuple, Optional

import torch
from allennlp.common import FromParams

from elmo_scratch.modules.lstm_stack import LstmStack
from elmo_scratch.modules.reading_order import reverse_sentences
from elmo_scratch.modules.token_encoders import TokenEncoder


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


class BiLm(torch.nn.Module, FromParams):
    """
    Two stacks that never meet over one token encoder: one reads each sentence left to right, one
    right to left, each sentence from a state of zeros. So a left-to-right state holds nothing
    of what follows its token, and a right-to-left state nothing of what precedes it.

    # Parameters

    token_encoder : `TokenEncoder`
        Makes the token layer; its `dim` is the `dim` of each direction.
    num_layers : `int`, optional (default = `2`)
        LSTM layers of each direction.
    cell_size : `int`
        Memory cells of each LSTM layer.
    dropout : `float`, optional (default = `0.1`)
        Share of each LSTM layer's inputs that is dropped in training.
    cell_clip, projection_clip : `float`, optional (default = `3.0`)
        As in `ProjectedLstm`.

    # Source

    Peters et al. 2018, "Deep contextualized word representations", section 3.1.
    """

    def __init__(
        self,
        *,
        token_encoder: TokenEncoder,
        cell_size: int,
        num_layers: int = 2,
        dropout: float = 0.1,
        cell_clip: Optional[float] = 3.0,
        projection_clip: Optional[float] = 3.0,
    ) -> None:
        super().__init__()
        self.dim = token_encoder.dim
        self.width = 2 * token_encoder.dim
        self.num_layers = 1 + num_layers
        self.token_encoder = token_encoder
        self.left_to_right, self.right_to_left = (
            LstmStack(
                token_encoder.dim,
                num_layers,
                cell_size,
                dropout=dropout,
                cell_clip=cell_clip,
                projection_clip=projection_clip,
            )
            for _ in range(2)
        )

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> BiLmOutput:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(batch, tokens)`, or `(batch, tokens, characters)`, as the token encoder reads.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`; real tokens come first in each row.

        # Returns

        `BiLmOutput`
            `num_layers` layers over `positions`, sentence boundaries included.
        """
        tokens, mask = self.token_encoder(ids, mask)  # (batch, positions, dim)
        left_to_right = self.left_to_right(tokens)
        right_to_left = self.right_to_left(reverse_sentences(tokens, mask))
        layers = [torch.cat([tokens, tokens], dim=-1)]  # of (batch, positions, width)
        for ahead, back in zip(left_to_right, right_to_left):
            layers.append(torch.cat([ahead, reverse_sentences(back, mask)], dim=-1))
        stacked = torch.stack(layers)  # (layers, batch, positions, width)
        return BiLmOutput(stacked.masked_fill(~mask.unsqueeze(-1), 0.0), mask)
