"""The mix of the paper: weights that the task learns."""

from typing import List, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes.layer_dropout import LayerDropout
from elmo_scratch.modules.mixes.layer_mix import LayerMix, weighted_sum


@LayerMix.register("trainable")
class TrainableMix(LayerMix):
    """
    A learned convex combination of the layers times one scale, `γ Σ softmax(s) h`.

    Registered as a `LayerMix` with name "trainable".

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    initial_weights : `List[float]`, optional (default = `None`)
        What the training starts from: one number a layer, before the softmax. -10000 leaves a
        layer out for good. `None` starts from equal weights.
    gamma : `float`, optional (default = `None`)
        Keeps γ at this number. With `None` it is learned, from 1 on.
    layer_dropout : `float`, optional (default = `0.0`)
        The probability with which a layer is left out of a batch of the training; the weights of
        the others then sum to one.
    do_layer_norm : `bool`, optional (default = `False`)
        As in `LayerMix`.

    # Raises

    ConfigurationError
        If there are not as many `initial_weights` as layers, they or `gamma` are no numbers to
        compute with, or `layer_dropout` is no probability.

    # Source

    Peters et al. 2018, section 3.2, equation 1.
    """

    def __init__(
        self,
        num_layers: int,
        *,
        initial_weights: Optional[List[float]] = None,
        gamma: Optional[float] = None,
        layer_dropout: float = 0.0,
        do_layer_norm: bool = False,
    ) -> None:
        super().__init__(num_layers, do_layer_norm=do_layer_norm)
        if initial_weights is None:
            initial_weights = [0.0] * num_layers
        if len(initial_weights) != num_layers:
            raise ConfigurationError(
                f"expected one weight for each of the {num_layers} layers, the token layer "
                f"included, but got {len(initial_weights)}"
            )
        self.weights = torch.nn.Parameter(torch.tensor(initial_weights, dtype=torch.float))
        # Jsonnet writes 1.0 as 1, which would make a tensor of whole numbers.
        scale = torch.tensor(1.0 if gamma is None else gamma, dtype=torch.float)
        self.gamma = torch.nn.Parameter(scale, requires_grad=gamma is None)
        if not (self.weights.isfinite().all() and self.gamma.isfinite()):
            raise ConfigurationError(
                "expected `initial_weights` and a `gamma` that are finite (-10000 leaves a layer "
                f"out), but got {initial_weights} and {scale.item()}"
            )
        self.layer_dropout = LayerDropout(num_layers, layer_dropout)

    @property
    def scalar_parameters(self) -> Tuple[torch.Tensor, ...]:
        """The weights one by one, each of shape `(1,)`, as AllenNLP's `ScalarMix` gives them."""
        return self.weights.split(1)

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """As in `LayerMix`."""
        kept = self.layer_dropout(layers.device)
        # Layers that were given no weight are none to be left with.
        is_left_with_none = (self.shares() * kept).sum() == 0
        remaining = self.weights.masked_fill(~(kept | is_left_with_none), float("-inf"))
        shares = torch.softmax(remaining, dim=0)
        return self.gamma * weighted_sum(shares, layers)

    def shares(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(layers,)`: the softmax of the learned weights.
        """
        return torch.softmax(self.weights.detach(), dim=0)
