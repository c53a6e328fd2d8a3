"""Weights drawn once at random: what a mix is worth that never learns."""

import torch

from elmo_scratch.modules.mixes.layer_mix import LayerMix, weighted_sum


@LayerMix.register("frozen")
class FrozenMix(LayerMix):
    """
    A convex combination of the layers whose weights λ are drawn at random and never trained: the
    softmax of one standard normal number a layer.

    Registered as a `LayerMix` with name "frozen".

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    seed : `int`, optional (default = `0`)
        The draw's own seed: it doesn't depend on the seeds of the training, nor disturbs them.
    """

    weights: torch.Tensor

    def __init__(self, num_layers: int, *, seed: int = 0) -> None:
        super().__init__(num_layers)
        drawn = torch.randn(num_layers, generator=torch.Generator().manual_seed(seed))
        self.register_buffer("weights", torch.softmax(drawn, dim=0))

    def forward(self, layers: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        layers : `torch.Tensor`
            Shape `(layers, batch, tokens, width)`.

        # Returns

        `torch.Tensor`
            Shape `(batch, tokens, width)`.
        """
        return weighted_sum(self.weights, layers)

    def shares(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(layers,)`: λ.
        """
        return self.weights
