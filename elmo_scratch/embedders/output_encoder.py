"""ELMo at the output of a model's encoder, for models that know nothing of it."""

from collections import deque
from typing import Any, Deque, Dict, Optional, Set

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
    padding = ~mask.unsqueeze(-1)  # (batch, tokens, 1)
    first = dropout(mix(layers, mask)).masked_fill(padding, 0.0)
    if output_mix is None:
        return first
    second = dropout(output_mix(layers, mask)).masked_fill(padding, 0.0)
    return joined_vectors(first, second)


FIRST_TOKENS: Deque[torch.Tensor] = deque(maxlen=16)
"""The second vectors of the first tokens of texts, each of shape `(texts, width)`, as embedders
made them last. `OutputEncoder` compares what arrives."""


def joined_vectors(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """
    Both vectors of each token, side by side: two tensors of shape `(batch, tokens, width)`, or with
    more axes first, make one of shape `(batch, tokens, 2 * width)`. `elmo_scratch_output` will know
    the second one again.
    """
    if second.size(-2) > 0:
        FIRST_TOKENS.append(second.detach()[..., 0, :].flatten(0, -2)[:256].clone())
    return torch.cat([first, second], dim=-1)


@Seq2SeqEncoder.register("elmo_scratch_output")
class OutputEncoder(Seq2SeqEncoder):
    """
    Wraps an encoder. An embedder with an `output_mix` gives two vectors a token; this class takes
    the second one out of the encoder's input, and appends it to the encoder's output: `[encoded;
    ELMo]`.

    The output of a bidirectional encoder has the directions as its halves, and so has this one's:
    `[left-to-right encoded; left-to-right ELMo; right-to-left encoded; right-to-left ELMo]`. What
    splits the halves, such as the span extractor `bidirectional_endpoint`, gets one direction of
    both. In models that were trained with a release before 0.3.0, and where `width` is odd, the
    vector stands at the end, and `is_bidirectional()` is `False`.

    The second vector must arrive as the embedder made it, apart from dropout. Its first batch is
    compared, in training and in evaluation.

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
        If `width` is not above 0, or `start` is outside of the embedded tokens; later, if what
        arrives is not the second vector.

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
        self._checked_modes: Set[bool] = set()
        self._has_halves = encoder.is_bidirectional() and width % 2 == 0
        if self._has_halves:
            # Weights that lack it are of a release that put the second vector at the end.
            self.register_buffer(HALVES, torch.tensor(1, dtype=torch.uint8))
            self.register_load_state_dict_pre_hook(_accept_older_weights)
            self.register_load_state_dict_post_hook(_lay_as_trained)

    def get_input_dim(self) -> int:
        """The encoder's input and the second vector."""
        return self.encoder.get_input_dim() + self._width

    def get_output_dim(self) -> int:
        """The encoder's output and the second vector."""
        return self.encoder.get_output_dim() + self._width

    def is_bidirectional(self) -> bool:
        """Whether the directions are the halves of the output."""
        return self._has_halves

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
        if self.training not in self._checked_modes:
            self._check(second)
        first = torch.cat([inputs[..., : self._start], inputs[..., end:]], dim=-1)
        encoded = self.encoder(first, mask, *args)
        second = self.dropout(second)
        if not self._has_halves:
            return torch.cat([encoded, second], dim=-1)
        halves = zip(encoded.chunk(2, dim=-1), second.chunk(2, dim=-1))
        return torch.cat([part for half in halves for part in half], dim=-1)

    def _check(self, second: torch.Tensor) -> None:
        """
        Raises `ConfigurationError` if these vectors, of shape `(batch, tokens, width)`, are none
        that an embedder has made.
        """
        rows = second[:, :1].detach().flatten(0, 1)  # (batch, width)
        rows = rows[(rows != 0).sum(dim=-1) > 1]
        if not len(rows):
            # All is padding, or was dropped: another batch will tell.
            return
        if not any(is_scaled_part(rows[0], made) for made in FIRST_TOKENS):
            end = self._start + self._width
            raise ConfigurationError(
                "`elmo_scratch_output` expected the second vector of an embedder with `output_mix` "
                f"at {self._start} to {end} of the {self.get_input_dim()} numbers of a token, but "
                "other numbers arrived. `start` says where it begins: embedders come in the order "
                "of their names, and a model may append features of its own. Nothing but dropout "
                "may change it on the way: no highway layer (`num_highway_layers: 0` in BiDAF), "
                "projection or feed-forward layer."
            )
        self._checked_modes.add(self.training)


HALVES = "has_halves"
"""The name of the buffer that tells how the output is laid."""


def is_scaled_part(row: torch.Tensor, made: torch.Tensor) -> bool:
    """
    Whether a vector, shape `(width,)`, is one of these, shape `(vectors, width)`, but for numbers
    that dropout has left out and the scale that it has given to the rest.
    """
    if made.size(-1) != len(row):
        return False
    kept = row != 0
    row, made = row[kept].double(), made.to(row.device)[:, kept].double()
    largest = row.abs().argmax()
    scaled = made * (row[largest] / made[:, largest : largest + 1])  # NaN or infinite where it is 0
    # Half precision, of which autocast may have made use, has 8 bits.
    return bool(((scaled - row).abs() <= 0.01 * row.abs()).all(dim=-1).any())


def _accept_older_weights(
    encoder: OutputEncoder, weights: Dict[str, Any], prefix: str, *_: Any
) -> None:
    """Adds what weights of a release before 0.3.0 lack."""
    weights.setdefault(f"{prefix}{HALVES}", torch.tensor(0, dtype=torch.uint8))


def _lay_as_trained(encoder: OutputEncoder, _: Any) -> None:
    """Lays the output as in the training that the weights come from."""
    encoder._has_halves = bool(encoder.get_buffer(HALVES))
