"""Words at random, frequent ones more often."""

import math
from typing import NamedTuple

import torch


class SampledWords(NamedTuple):
    """
    Distinct words.

    # Parameters

    ids : `torch.Tensor`
        Shape `(num_samples,)`, in rising order.
    num_tries : `int`
        How many words were drawn until so many different ones were among them.
    """

    ids: torch.Tensor
    num_tries: int


class LogUniformSampler(torch.nn.Module):
    """
    Draws words by Zipf's law from a vocabulary in order of frequency, `P(id) = log(1 + 1 / id) /
    log(num_words)`, until enough different ones are found. Id 0, padding, is never drawn.

    What is drawn depends only on a seed, which comes from PyTorch's global generator when the
    sampler is made, and on how often was drawn before. Both belong to the state of the module: a
    training that is recovered goes on with the same words, and so do the workers of a distributed
    training, which are given the state of the first, draw the same.

    # Parameters

    num_words : `int`
        The size of the vocabulary, padding included.
    num_samples : `int`
        How many distinct words to draw. Finding nearly all words of a large vocabulary takes long.

    # Raises

    ValueError
        If there are not so many words.

    # Source

    `tf.random.log_uniform_candidate_sampler` with `unique=True`.
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
        # PyTorch's generator on the CPU looks at 32 bits of a seed.
        self.register_buffer("seed", torch.randint(2**31, ()))
        self.register_buffer("num_draws", torch.tensor(0))

    def forward(self) -> SampledWords:
        """
        # Returns

        `SampledWords`
            Different ones at every call.
        """
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
        # Parameters

        ids : `torch.Tensor`
            Of any shape: words, but no padding.
        num_tries : `int`
            Of `SampledWords`.

        # Returns

        `torch.Tensor`
            Of the shape of `ids`: the logarithm of the probability that a word is found in so many
            tries.
        """
        probabilities = (1 / ids.double()).log1p() / math.log(self._num_words)
        return (-(num_tries * (-probabilities).log1p()).expm1()).log()

    def _draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        """Words with repetitions, shape `(count,)`, always made on the CPU."""
        uniform = torch.rand(count, dtype=torch.float64, generator=generator, device="cpu")
        # The highest uniform number may be rounded up to `num_words`, which is no word.
        return (uniform * math.log(self._num_words)).exp().long().clamp_(max=self._num_words - 1)

    def _is_new(self, drawn: torch.Tensor) -> torch.Tensor:
        """Shape `(drawn,)`: whether a word comes for the first time."""
        order = torch.arange(len(drawn), device=drawn.device)
        first = torch.full((self._num_words,), len(drawn), device=drawn.device)
        first.scatter_reduce_(0, drawn, order, "amin")
        return first[drawn] == order
