"""Weights that no training changes: drawn once at random, or given."""

from typing import List, Optional

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.modules.mixes.layer_mix import LayerMix, weighted_sum


@LayerMix.register("frozen")
class FrozenMix(LayerMix):
    """
    A convex combination of the layers whose weights λ are never trained.

    Registered as a `LayerMix` with name "frozen".

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    weights : `List[float]`, optional (default = `None`)
        One number a layer, 0 or more; λ is each one's share of their sum. With `None`, λ is drawn
        at random: the softmax of one standard normal number a layer.
    seed : `int`, optional (default = `0`)
        The draw's own seed: it doesn't depend on the seeds of the training, nor disturbs them.
        Given `weights` need none.
    do_layer_norm : `bool`, optional (default = `False`)
        As in `LayerMix`.

    # Raises

    ConfigurationError
        If there are not as many `weights` as layers, or they have no shares.
    """

    weights: torch.Tensor

    def __init__(
        self,
        num_layers: int,
        *,
        weights: Optional[List[float]] = None,
        seed: int = 0,
        do_layer_norm: bool = False,
    ) -> None:
        super().__init__(num_layers, do_layer_norm=do_layer_norm)
        if weights is None:
            generator = torch.Generator().manual_seed(seed)
            drawn = torch.randn(num_layers, generator=generator, device="cpu")
            self.register_buffer(
                "weights", torch.softmax(drawn, dim=0).to(torch.get_default_device())
            )
            return
        given = torch.tensor(weights, dtype=torch.float)
        if len(given) != num_layers or bool((given < 0).any()) or not 0 < given.sum() < torch.inf:
            raise ConfigurationError(
                f"expected one weight for each of the {num_layers} layers, the token layer "
                f"included, none below 0 and one above it, but got {weights}"
            )
        self.register_buffer("weights", given / given.sum())

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """As in `LayerMix`."""
        return weighted_sum(self.weights, layers)

    def shares(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(layers,)`: λ.
        """
        return self.weights
