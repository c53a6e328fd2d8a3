"""The mix of the paper, with weights that the task learns."""

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
        How many layers `forward` gets, including the token layer.
    initial_weights : `List[float]`, optional (default = `None`)
        The weights before training: one number a layer, before the softmax. -10000 leaves a layer
        out for good. `None` stands for equal weights.
    gamma : `float`, optional (default = `None`)
        Fixes γ to this number. With `None` it is learned, starting from 1.
    layer_dropout : `float`, optional (default = `0.0`)
        The probability that a layer is left out of a training batch; the weights of the others then
        sum to one.
    do_layer_norm : `bool`, optional (default = `False`)
        See `LayerMix`.

    # Raises

    ConfigurationError
        If there are not as many `initial_weights` as layers, they or `gamma` are not finite, or
        `layer_dropout` is not a probability.

    # Source

    Peters et al. 2018, section 3.2, equation 1.
    """

    allennlp_names = {"weights": "scalar_parameters.0"}
    """Parts of parameters' names, and what they are called in AllenNLP's ELMo. Regular expressions
    of regularizers match these too."""

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
        """
        The weights one by one, each of shape `(1,)`; AllenNLP's `ScalarMix` has the same attribute.
        """
        return self.weights.split(1)

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights: torch.Tensor = self.weights
        if self.training:
            kept = self.layer_dropout(layers.device)
            # If only layers without weight would be left, all are kept.
            is_left_with_none = (self.shares() * kept).sum() == 0
            weights = weights.masked_fill(~(kept | is_left_with_none), float("-inf"))
        return self.gamma * weighted_sum(torch.softmax(weights, dim=0), layers)

    def shares(self) -> torch.Tensor:
        """The softmax of the learned weights, shape `(layers,)`."""
        return torch.softmax(self.weights.detach(), dim=0)
