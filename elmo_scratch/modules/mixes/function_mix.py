"""A learned function of all layers in place of a weighted sum."""

from typing import Optional

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes.layer_dropout import LayerDropout
from elmo_scratch.modules.mixes.layer_mix import LayerMix


@LayerMix.register("function")
class FunctionMix(LayerMix):
    """
    A perceptron with one hidden layer over the layers of a token laid side by side,
    `relu([h_0; h_1; ...] A + a) B + b`.

    Registered as a `LayerMix` with name "function".

    # Parameters

    num_layers : `int`
        How many layers `forward` gets, including the token layer.
    width : `int`
        The size of a layer's vector.
    hidden_dim : `int`, optional (default = `width`)
        The size of the hidden layer.
    layer_dropout : `float`, optional (default = `0.0`)
        The probability that a layer is zero in a training batch; the others are scaled up to make
        up for it.
    do_layer_norm : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        If `hidden_dim` is below 1, or `layer_dropout` is not a probability.
    """

    def __init__(
        self,
        num_layers: int,
        width: int,
        *,
        hidden_dim: Optional[int] = None,
        layer_dropout: float = 0.0,
        do_layer_norm: bool = False,
    ) -> None:
        super().__init__(num_layers, do_layer_norm=do_layer_norm)
        hidden_dim = width if hidden_dim is None else hidden_dim
        if hidden_dim < 1:
            raise ConfigurationError(f"expected a `hidden_dim` of 1 or more, but got {hidden_dim}")
        self.width = width
        self.hidden = torch.nn.Linear(num_layers * width, hidden_dim)
        self.output = torch.nn.Linear(hidden_dim, width)
        self.layer_dropout = LayerDropout(num_layers, layer_dropout)

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if self.layer_dropout.is_active:
            kept = self.layer_dropout(layers.device)
            scale = kept * (self.num_layers / kept.sum())  # (layers,)
            layers = layers * scale.view(-1, 1, 1, 1)
        beside = layers.permute(1, 2, 0, 3).flatten(2)  # (batch, tokens, layers * width)
        return self.output(torch.relu(self.hidden(beside)))

    def shares(self) -> torch.Tensor:
        """
        Each layer's share of the norms of the weights that read it, shape `(layers,)`. A hint at
        where the function looks, not a weight that it applies. Equal if all norms are zero.
        """
        by_layer = self.hidden.weight.detach().unflatten(1, (self.num_layers, self.width))
        norms = by_layer.norm(dim=(0, 2))  # (layers,)
        total = norms.sum()
        return torch.where(total > 0, norms / total, 1 / self.num_layers)
