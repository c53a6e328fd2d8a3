"""Dropout of whole layers, for mixes that learn."""

import torch
from allennlp.common.checks import ConfigurationError


class LayerDropout(torch.nn.Module):
    """
    Draws which layers a mix has to do without in a batch of the training, so that it doesn't come
    to rest on one of them. In evaluation it keeps all.

    # Parameters

    num_layers : `int`
        How many there are.
    share : `float`
        The probability with which each of them is dropped, 0 or more and below 1.

    # Raises

    ConfigurationError
        If `share` is none.

    # Source

    Kondratyuk & Straka 2019 (UDify), section 3.2, "layer dropout".
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
        """Whether layers are dropped at all."""
        return self.training and self.share > 0.0

    def forward(self, device: torch.device) -> torch.Tensor:
        """
        # Parameters

        device : `torch.device`
            Where the result is needed.

        # Returns

        `torch.BoolTensor`
            Shape `(layers,)`: what is kept. Where every layer would be dropped, all are kept.
        """
        if not self.is_active:
            return torch.ones(self.num_layers, dtype=torch.bool, device=device)
        kept = torch.rand(self.num_layers, device=device) >= self.share
        return kept | ~kept.any()
