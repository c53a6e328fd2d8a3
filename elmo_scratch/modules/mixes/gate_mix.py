"""A mix whose weights differ from token to token."""

import torch

from elmo_scratch.modules.mixes.layer_dropout import LayerDropout
from elmo_scratch.modules.mixes.layer_mix import LayerMix


@LayerMix.register("gate")
class GateMix(LayerMix):
    """
    A weighted sum of the layers whose weights are a learned function of the token, `γ Σ g_l h_l`
    with `g = softmax([h_0; h_1; ...] A + a)`. It starts from equal weights. In distributed
    training, `shares` counts only the texts of its own process.

    Registered as a `LayerMix` with name "gate".

    # Parameters

    num_layers : `int`
        How many layers `forward` gets, including the token layer.
    width : `int`
        The size of a layer's vector.
    layer_dropout : `float`, optional (default = `0.0`)
        The probability that a layer is left out of a training batch; the weights of the others then
        sum to one.
    do_layer_norm : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        If `layer_dropout` is not a probability.
    """

    _share_sums: torch.Tensor
    _num_tokens: torch.Tensor

    def __init__(
        self,
        num_layers: int,
        width: int,
        *,
        layer_dropout: float = 0.0,
        do_layer_norm: bool = False,
    ) -> None:
        super().__init__(num_layers, do_layer_norm=do_layer_norm)
        self.gate = torch.nn.Linear(num_layers * width, num_layers)
        torch.nn.init.zeros_(self.gate.weight)
        torch.nn.init.zeros_(self.gate.bias)
        self.gamma = torch.nn.Parameter(torch.tensor(1.0))
        self.layer_dropout = LayerDropout(num_layers, layer_dropout)
        self.register_buffer("_share_sums", torch.zeros(num_layers), persistent=False)
        self.register_buffer("_num_tokens", torch.tensor(0), persistent=False)
        self._summed_in_training = True

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.gate(layers.permute(1, 2, 0, 3).flatten(2))  # (batch, tokens, layers)
        kept = self.layer_dropout(layers.device)
        gates = torch.softmax(scores.masked_fill(~kept, float("-inf")), dim=-1)
        with torch.no_grad():
            self._note_shares(torch.softmax(scores, dim=-1), mask)
        return self.gamma * torch.einsum("btl,lbtw->btw", gates, layers)

    def shares(self) -> torch.Tensor:
        """
        The mean weights, shape `(layers,)`, over the tokens of the last training batch, as if no
        layer had been dropped, or of all evaluation batches since then. Equal before the first
        batch.
        """
        if self._num_tokens == 0:
            return torch.full_like(self._share_sums, 1 / self.num_layers)
        return self._share_sums / self._num_tokens

    def _note_shares(self, gates: torch.Tensor, mask: torch.Tensor) -> None:
        """
        Adds the weights of all tokens of a batch, shape `(batch, tokens, layers)`, to the sums.
        """
        if self.training or self._summed_in_training:
            if not mask.any():
                return
            self._share_sums.zero_()
            self._num_tokens.zero_()
        self._summed_in_training = self.training
        self._share_sums += gates.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=(0, 1))
        self._num_tokens += mask.sum()
