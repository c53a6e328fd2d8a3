"""The mix of the paper: weights that the task learns."""

import torch

from elmo_scratch.modules.mixes.layer_mix import LayerMix, weighted_sum


@LayerMix.register("trainable")
class TrainableMix(LayerMix):
    """
    A learned convex combination of the layers times one learned scale, `γ Σ softmax(s) h`.
    Starts from equal weights and a scale of one.

    Registered as a `LayerMix` with name "trainable".

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.

    # Source

    Peters et al. 2018, section 3.2, equation 1.
    """

    def __init__(self, num_layers: int) -> None:
        super().__init__(num_layers)
        self.weights = torch.nn.Parameter(torch.zeros(num_layers))
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
