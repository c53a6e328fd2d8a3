"""Weights of its own for each token."""

import torch

from elmo_scratch.modules.mixes.layer_dropout import LayerDropout
from elmo_scratch.modules.mixes.layer_mix import LayerMix


@LayerMix.register("gate")
class GateMix(LayerMix):
    """
    A weighted sum of the layers whose weights are a learned function of the token,
    `γ Σ g_l h_l` with `g = softmax([h_0; h_1; ...] A + a)`. It starts from equal weights.

    Registered as a `LayerMix` with name "gate".

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    width : `int`
        The size of a layer's vector.
    layer_dropout : `float`, optional (default = `0.0`)
        The probability with which a layer is left out of a batch of the training; the weights of
        the others then sum to one.
    do_layer_norm : `bool`, optional (default = `False`)
        As in `LayerMix`.

    # Raises

    ConfigurationError
        If `layer_dropout` is no probability.
    """

    _last_shares: torch.Tensor

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
        equal = torch.full((num_layers,), 1 / num_layers)
        self.register_buffer("_last_shares", equal, persistent=False)

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """As in `LayerMix`."""
        scores = self.gate(layers.permute(1, 2, 0, 3).flatten(2))  # (batch, tokens, layers)
        kept = self.layer_dropout(layers.device)
        gates = torch.softmax(scores.masked_fill(~kept, float("-inf")), dim=-1)
        count = mask.sum()
        sums = gates.detach().masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=(0, 1))  # (layers,)
        self._last_shares = torch.where(count > 0, sums / count, self._last_shares)
        return self.gamma * torch.einsum("btl,lbtw->btw", gates, layers)

    def shares(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(layers,)`: the mean over the tokens of the last batch; equal before the first.
        """
        return self._last_shares
