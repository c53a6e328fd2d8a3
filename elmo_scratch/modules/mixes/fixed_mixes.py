"""Mixes without weights: the mean of all layers, and the last layer."""

import torch

from elmo_scratch.modules.mixes.layer_mix import LayerMix


@LayerMix.register("mean")
class MeanMix(LayerMix):
    """
    The mean of all layers, as in `allennlp elmo --average`.

    Registered as a `LayerMix` with name "mean".

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    do_layer_norm : `bool`, optional (default = `False`)
        As in `LayerMix`.
    """

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """As in `LayerMix`."""
        return layers.mean(dim=0)

    def shares(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(layers,)`: equal ones.
        """
        return torch.full((self.num_layers,), 1 / self.num_layers)


@LayerMix.register("top")
class TopMix(LayerMix):
    """
    The last layer alone.

    Registered as a `LayerMix` with name "top".

    # Parameters

    num_layers : `int`
        How many layers arrive in `forward`, the token layer included.
    do_layer_norm : `bool`, optional (default = `False`)
        As in `LayerMix`.

    # Source

    Peters et al. 2017 (TagLM), section 2.3.
    """

    def combine(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """As in `LayerMix`."""
        return layers[-1]

    def shares(self) -> torch.Tensor:
        """
        # Returns

        `torch.Tensor`
            Shape `(layers,)`: one for the last layer.
        """
        return torch.eye(self.num_layers)[-1]
