"""A text as one vector, by several poolings side by side."""

from typing import List, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.seq2vec_encoders import Seq2VecEncoder


@Seq2VecEncoder.register("elmo_scratch_several")
class SeveralPoolings(Seq2VecEncoder):
    """
    Lays what several encoders make of a text side by side: a maximum over its n-grams tells whether
    something is said anywhere, a mean over its tokens how much of it.

    Registered as a `Seq2VecEncoder` with name "elmo_scratch_several".

    # Parameters

    encoders : `List[Seq2VecEncoder]`
        The encoders, which read the same tokens.

    # Raises

    ConfigurationError
        If there is none, or they read vectors of different sizes.

    # Source

    Howard and Ruder 2018, section 3.3, "Concat pooling".
    """

    def __init__(self, encoders: List[Seq2VecEncoder]) -> None:
        super().__init__()
        sizes = [encoder.get_input_dim() for encoder in encoders]
        if len(set(sizes)) != 1:
            raise ConfigurationError(
                f"expected encoders that read vectors of one size, but got the sizes {sizes}"
            )
        self.encoders = torch.nn.ModuleList(encoders)
        self._input_dim = sizes[0]
        self._output_dim = sum(encoder.get_output_dim() for encoder in encoders)

    def get_input_dim(self) -> int:
        """What each encoder reads."""
        return self._input_dim

    def get_output_dim(self) -> int:
        """The sum of what they make."""
        return self._output_dim

    def forward(self, tokens: torch.Tensor, mask: Optional[torch.BoolTensor]) -> torch.Tensor:
        """
        # Parameters

        tokens : `torch.Tensor`
            Shape `(batch, tokens, get_input_dim())`.
        mask : `torch.BoolTensor`, optional
            Shape `(batch, tokens)`.

        # Returns

        `torch.Tensor`
            Shape `(batch, get_output_dim())`.
        """
        return torch.cat([encoder(tokens, mask) for encoder in self.encoders], dim=-1)
