"""Dropout of whole layers, for trained mixes."""

import torch
from allennlp.common.checks import ConfigurationError


class LayerDropout(torch.nn.Module):
    """
    Chooses the layers that a mix goes without in a training batch, so that it doesn't come to rely
    on one of them (Kondratyuk & Straka 2019, UDify, section 3.2, "layer dropout"). In evaluation it
    keeps all. `share`, the probability that a layer is dropped, is in `[0, 1)`; else a
    `ConfigurationError` is raised.
    """

    def __init__(self, num_layers: int, share: float) -> None:
        super().__init__()
        if not 0.0 <= share < 1.0:
            raise ConfigurationError(
                f"expected a `layer_dropout` of 0 or more and below 1, but got {share}"
            )
        self.num_layers = num_layers
        self.share = share

    @property
    def is_active(self) -> bool:
        """Whether any layers are dropped now."""
        return self.training and self.share > 0.0

    def forward(self, device: torch.device) -> torch.Tensor:
        """Shape `(layers,)`: whether each layer is kept. If all would be dropped, all are kept."""
        if not self.is_active:
            return torch.ones(self.num_layers, dtype=torch.bool, device=device)
        kept = torch.rand(self.num_layers, device=device) >= self.share
        return kept | ~kept.any()
