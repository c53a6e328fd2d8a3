"""Random samples of words, in which frequent words are more likely."""

import math
from typing import NamedTuple

import torch


class SampledWords(NamedTuple):
    """
    Distinct words, shape `(num_samples,)` and in rising order, and the number of draws until so
    many distinct ones were found.
    """

    ids: torch.Tensor
    num_tries: int


class LogUniformSampler(torch.nn.Module):
    """
    Draws words by Zipf's law from a vocabulary in order of frequency,
    `P(id) = log(1 + 1 / id) / log(num_words)`, until `num_samples` distinct ones are found, as
    `tf.random.log_uniform_candidate_sampler` with `unique=True` does. Id 0, padding, is never
    drawn, but `num_words` includes it. Finding nearly all words of a large vocabulary takes long.
    Raises a `ValueError` if there are not so many words.

    A draw depends only on a seed, taken from PyTorch's global generator when the sampler is made,
    and on the number of draws before. Both are in the module's state: a recovered training goes on
    with the same words, and the workers of a distributed training, which get the first one's state,
    draw the same words.
    """

    seed: torch.Tensor
    num_draws: torch.Tensor

    def __init__(self, *, num_words: int, num_samples: int) -> None:
        super().__init__()
        if not 0 < num_samples < num_words:
            raise ValueError(
                "expected a `num_samples` of at least 1 and at most the number of words without "
                f"padding, {num_words - 1}, but got {num_samples}. With so few words the softmax "
                "`full` takes little time"
            )
        self._num_words = num_words
        self._num_samples = num_samples
        # PyTorch's CPU generator uses 32 bits of a seed.
        self.register_buffer("seed", torch.randint(2**31, ()))
        self.register_buffer("num_draws", torch.tensor(0))

    def forward(self) -> SampledWords:
        """A new sample at every call."""
        generator = torch.Generator().manual_seed(int(self.seed) + int(self.num_draws))
        self.num_draws += 1
        drawn = self._draw(self._num_samples, generator)
        while int((is_new := self._is_new(drawn)).sum()) < self._num_samples:
            drawn = torch.cat([drawn, self._draw(len(drawn), generator)])
        found = is_new.nonzero().squeeze(1)[: self._num_samples]
        ids = drawn[found].sort().values.to(self.seed.device)
        return SampledWords(ids, int(found[-1]) + 1)

    def log_expected_counts(self, ids: torch.Tensor, num_tries: int) -> torch.Tensor:
        """
        The logarithms of the probabilities that words are found in `num_tries` draws. `ids`, of any
        shape, must not contain padding.
        """
        probabilities = (1 / ids.double()).log1p() / math.log(self._num_words)
        return (-(num_tries * (-probabilities).log1p()).expm1()).log()

    def _draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        """Draws words with repetitions, shape `(count,)`, always on the CPU."""
        uniform = torch.rand(count, dtype=torch.float64, generator=generator, device="cpu")
        # The highest uniform number may be rounded up to `num_words`, which is not an id.
        return (uniform * math.log(self._num_words)).exp().long().clamp_(max=self._num_words - 1)

    def _is_new(self, drawn: torch.Tensor) -> torch.Tensor:
        """Whether each word occurs for the first time, shape `(drawn,)`."""
        order = torch.arange(len(drawn), device=drawn.device)
        first = torch.full((self._num_words,), len(drawn), device=drawn.device)
        first.scatter_reduce_(0, drawn, order, "amin")
        return first[drawn] == order
