"""Mixes without weights: the mean of all layers, and the last layer."""

import torch

from elmo_scratch.modules.mixes.layer_mix import LayerMix


@LayerMix.register("mean")
class MeanMix(LayerMix):
    """
    The mean of all layers, as in `allennlp elmo --average`.

    Registered as a `LayerMix` with name "mean". Its parameters are those of `LayerMix`.
    """

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return layers.mean(dim=0)

    def shares(self) -> torch.Tensor:
        """Equal shares, shape `(layers,)`."""
        return torch.full((self.num_layers,), 1 / self.num_layers)


@LayerMix.register("top")
class TopMix(LayerMix):
    """
    The last layer alone.

    Registered as a `LayerMix` with name "top". Its parameters are those of `LayerMix`.

    # Source

    Peters et al. 2017 (TagLM), section 2.3.
    """

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return layers[-1]

    def shares(self) -> torch.Tensor:
        """Shape `(layers,)`: 1 for the last layer, else 0."""
        return torch.eye(self.num_layers)[-1]
