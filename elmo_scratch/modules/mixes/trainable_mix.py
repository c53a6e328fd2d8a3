"""The mix of the paper: weights that the task learns."""

from typing import List, Optional

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes.layer_mix import LayerMix, weighted_sum


@LayerMix.register("trainable")
class TrainableMix(LayerMix):
    """
    A learned convex combination of the layers times one learned scale, `γ Σ softmax(s) h`.
    Starts from a scale of one.

    Registered as a `LayerMix` with name "trainable".

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    initial_weights : `List[float]`, optional (default = `None`)
        One number a layer, before the softmax. `None` starts from equal weights.

    # Raises

    ConfigurationError
        If there are not as many `initial_weights` as layers.

    # Source

    Peters et al. 2018, section 3.2, equation 1.
    """

    def __init__(self, num_layers: int, *, initial_weights: Optional[List[float]] = None) -> None:
        super().__init__(num_layers)
        if initial_weights is None:
            initial_weights = [0.0] * num_layers
        if len(initial_weights) != num_layers:
            raise ConfigurationError(
                f"expected one weight for each of the {num_layers} layers, the token layer "
                f"included, but got {len(initial_weights)}"
            )
        self.weights = torch.nn.Parameter(torch.tensor(initial_weights, dtype=torch.float))
        self.gamma = torch.nn.Parameter(torch.ones(()))

    def forward(self, layers: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        layers : `torch.Tensor`
            Shape `(layers, batch, tokens, width)`.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, width)`.
        """
        return self.gamma * weighted_sum(torch.softmax(self.weights, dim=0), layers)

    def shares(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(layers,)`: the softmax of the learned weights.
        """
        return torch.softmax(self.weights.detach(), dim=0)
