"""ELMo at the output of a model's encoder, for models that know nothing of it."""

from typing import Any, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder

from elmo_scratch.modules.mixes import LayerMix


def mixed_vectors(
    layers: torch.Tensor,
    mask: torch.Tensor,
    mix: LayerMix,
    output_mix: Optional[LayerMix],
    dropout: torch.nn.Dropout,
) -> torch.Tensor:
    """
    Mixes `layers` of shape `(layers, batch, tokens, width)`, with dropout on each mix. Returns
    vectors of shape `(batch, tokens, width)`, or `(batch, tokens, 2 * width)` with `output_mix`:
    its vector, for `elmo_scratch_output`, comes second. They are zero where `mask`, of shape
    `(batch, tokens)`, is `False`. Source: Peters et al. 2018, section 3.3.
    """
    mixes = [mix] if output_mix is None else [mix, output_mix]
    together = torch.cat([dropout(one(layers, mask)) for one in mixes], dim=-1)
    return together.masked_fill(~mask.unsqueeze(-1), 0.0)


@Seq2SeqEncoder.register("elmo_scratch_output")
class OutputEncoder(Seq2SeqEncoder):
    """
    Wraps an encoder. An embedder with an `output_mix` gives two vectors a token; this class takes
    the second one out of the encoder's input, and appends it to the encoder's output: `[encoded;
    ELMo]`.

    The two directions are not halves of its output: `is_bidirectional` is `False`, whatever the
    wrapped encoder.

    Registered as a `Seq2SeqEncoder` with name "elmo_scratch_output".

    # Parameters

    encoder : `Seq2SeqEncoder`
        The encoder. Its input does not include the second vector.
    width : `int`
        The size of the second vector: the `width` of the biLM, or the embedder's `projection_dim`.
    start : `int`, optional (default = `None`)
        Where the second vector begins in the embedded tokens. `None` puts it at the end. AllenNLP
        concatenates embedders in the alphabetical order of their names: with ELMo called `elmo`, of
        a `width` of 512, beside another called `tokens`, the second vector is neither the first nor
        the last, and `start` is 512.
    dropout : `float`, optional (default = `0.0`)
        Share of the second vector that is dropped in training, in addition to the embedder's
        dropout.

    # Raises

    ConfigurationError
        If `width` is not above 0, or `start` is outside of the embedded tokens.

    # Source

    Peters et al. 2018, section 3.3.
    """

    def __init__(
        self,
        encoder: Seq2SeqEncoder,
        width: int,
        *,
        start: Optional[int] = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        read = encoder.get_input_dim()
        if start is None:
            start = read
        if width < 1 or not 0 <= start <= read:
            raise ConfigurationError(
                "expected a `width` above 0 and a `start` from 0 to what the encoder reads, "
                f"{read}, but got a `width` of {width} and a `start` of {start}"
            )
        self.encoder = encoder
        self.dropout = torch.nn.Dropout(dropout)
        self._start = start
        self._width = width

    def get_input_dim(self) -> int:
        """The encoder's input and the second vector."""
        return self.encoder.get_input_dim() + self._width

    def get_output_dim(self) -> int:
        """The encoder's output and the second vector."""
        return self.encoder.get_output_dim() + self._width

    def is_bidirectional(self) -> bool:
        """`False`: the directions of the encoder and of ELMo are not two halves of the output."""
        return False

    def reset_states(self, padding_mask: Optional[torch.BoolTensor] = None) -> None:
        self.encoder.reset_states(padding_mask)  # type: ignore[arg-type]

    def forward(self, inputs: torch.Tensor, mask: torch.Tensor, *args: Any) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(batch, tokens, get_input_dim())`.
        mask : `torch.BoolTensor`
            Shape `(batch, tokens)`.
        *args : `Any`
            For the encoder.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, get_output_dim())`.
        """
        end = self._start + self._width
        second = inputs[..., self._start : end]  # (batch, tokens, width)
        first = torch.cat([inputs[..., : self._start], inputs[..., end:]], dim=-1)
        encoded = self.encoder(first, mask, *args)
        return torch.cat([encoded, self.dropout(second)], dim=-1)
