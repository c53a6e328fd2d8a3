"""From the characters of a word to a vector, whatever the word's length."""

from typing import Callable, Dict, List, Sequence, Tuple

import torch

from elmo_scratch.alphabet import NUM_BATCH_IDS, PADDING_ID
from elmo_scratch.modules.maximum import maximum_over_windows
from elmo_scratch.modules.products import Affine, MixedPrecision

ACTIVATIONS: Dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "tanh": torch.tanh,
}


class CharacterConvolution(MixedPrecision):
    """
    Convolutions of several widths over the characters of a word, of each filter the maximum over
    the word, then an activation.

    Windows that lie wholly in the padding are all alike, so that one of them stands for all.

    # Parameters

    character_dim : `int`
        The size of a character's vector.
    filters : `Sequence[Tuple[int, int]]`
        Pairs of a width, in characters, and the number of filters of that width.
    activation : `str`
        `"relu"` or `"tanh"`.

    # Source

    Kim et al. 2016, "Character-Aware Neural Language Models", section 2.2.
    """

    def __init__(
        self, character_dim: int, filters: Sequence[Tuple[int, int]], activation: str
    ) -> None:
        super().__init__()
        self.filters = tuple((width, number) for width, number in filters)
        self.activation = activation
        self.output_dim = sum(number for _, number in filters)
        vectors = torch.empty(NUM_BATCH_IDS, character_dim).uniform_(-1.0, 1.0)
        vectors[0] = 0.0
        self.embedding = torch.nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=0)
        self.convolutions = torch.nn.ModuleList(
            Affine(width * character_dim, number) for width, number in filters
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        ids : `torch.Tensor`
            Shape `(words, characters)`, as in a batch. It is fastest with words of like lengths.

        # Returns

        `torch.Tensor`
            Shape `(words, filters)`.
        """
        longest = int(lengths(ids).max()) if len(ids) else 0
        needed = min(ids.size(1), longest + max(width for width, _ in self.filters))
        weight = self.embedding.weight
        # Rounded here, where there are the fewest numbers to round.
        dtype = self.matmul_dtype_for(weight)
        characters = self.embedding(ids[:, :needed]).to(dtype)  # (words, needed, character_dim)
        maxima: List[torch.Tensor] = []
        for (width, _), convolution in zip(self.filters, self.convolutions):
            # The first windows that start in the word, and one that starts behind it.
            num_windows = min(longest + 1, ids.size(1) - width + 1)
            windows = characters[:, : num_windows + width - 1].unfold(1, width, 1)
            windows = windows.transpose(2, 3).flatten(2)  # (words, windows, width * character_dim)
            responses = convolution(windows.flatten(0, 1)).unflatten(0, (len(ids), num_windows))
            maxima.append(maximum_over_windows(responses).to(weight.dtype))
        return ACTIVATIONS[self.activation](torch.cat(maxima, dim=1))


def lengths(ids: torch.Tensor) -> torch.Tensor:
    """
    # Parameters

    ids : `torch.Tensor`
        Shape `(words, characters)`.

    # Returns

    `torch.Tensor`
        Shape `(words,)`: how many ids of each word lie before its padding.
    """
    places = torch.arange(1, ids.size(1) + 1, device=ids.device)
    return torch.where(ids != PADDING_ID, places, 0).amax(dim=1)
