"""A mix with weights that are never trained: drawn at random, or given."""

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
        How many layers `forward` gets, including the token layer.
    weights : `List[float]`, optional (default = `None`)
        One number a layer, 0 or more; λ is each one's share of their sum. With `None`, λ is drawn
        at random: the softmax of one standard normal number a layer.
    seed : `int`, optional (default = `0`)
        The seed of the draw, which neither depends on the seeds of the training nor affects them.
    do_layer_norm : `bool`, optional (default = `False`)
        See `LayerMix`.

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
        return weighted_sum(self.weights, layers)

    def shares(self) -> torch.Tensor:
        """The weights λ, shape `(layers,)`."""
        return self.weights
