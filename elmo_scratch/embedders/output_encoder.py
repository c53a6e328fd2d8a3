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
    # Parameters

    layers : `torch.Tensor`
        Shape `(layers, batch, tokens, width)`.
    mask : `torch.BoolTensor`
        Shape `(batch, tokens)`.
    mix : `LayerMix`
        Makes the vector that enters a model at its input.
    output_mix : `Optional[LayerMix]`
        Makes a second one, for `elmo_scratch_output`, which lies behind the first.
    dropout : `torch.nn.Dropout`
        For each of them.

    # Returns

    `torch.Tensor`
        Shape `(batch, tokens, width)`, or `(batch, tokens, 2 * width)` with `output_mix`, zero
        where `mask` is `False`.

    # Source

    Peters et al. 2018, section 3.3.
    """
    mixes = [mix] if output_mix is None else [mix, output_mix]
    together = torch.cat([dropout(one(layers, mask)) for one in mixes], dim=-1)
    return together.masked_fill(~mask.unsqueeze(-1), 0.0)


@Seq2SeqEncoder.register("elmo_scratch_output")
class OutputEncoder(Seq2SeqEncoder):
    """
    Wraps an encoder. An embedder with an `output_mix` gives two vectors a token; this takes the
    second one out of what the encoder would read, and lays it beside what the encoder has made of
    the rest: `[encoded; ELMo]`.

    Its output has no halves of two directions: `is_bidirectional` is `False`, whatever the wrapped
    encoder.

    Registered as a `Seq2SeqEncoder` with name "elmo_scratch_output".

    # Parameters

    encoder : `Seq2SeqEncoder`
        The encoder. Its input has no place for the second vector.
    width : `int`
        The size of the second vector: the `width` of the biLM, or the embedder's `projection_dim`.
    start : `int`, optional (default = `None`)
        Where it begins in what the model has embedded. `None` is the end. AllenNLP lays embedders
        side by side in the alphabetical order of their names: with ELMo called `elmo`, of a `width`
        of 512, beside another called `tokens`, the second vector is neither the first nor the last,
        and `start` is 512.
    dropout : `float`, optional (default = `0.0`)
        Share of the second vector that is dropped in training, beside the embedder's own dropout.

    # Raises

    ConfigurationError
        If `width` is not above 0, or `start` is no place in what the model has embedded.

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
        """What the encoder reads and the second vector."""
        return self.encoder.get_input_dim() + self._width

    def get_output_dim(self) -> int:
        """What the encoder makes and the second vector."""
        return self.encoder.get_output_dim() + self._width

    def is_bidirectional(self) -> bool:
        """`False`: the directions of the encoder and of ELMo don't lie in two halves."""
        return False

    def reset_states(self, padding_mask: Optional[torch.BoolTensor] = None) -> None:
        """Forgets what an encoder that carries its state from batch to batch has read."""
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
