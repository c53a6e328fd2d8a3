"""A softmax that spends less on rare words."""

import math
from typing import List, Optional

import torch

from elmo_scratch.kernels import Linear, TopScores, top_scores
from elmo_scratch.modules.softmaxes.output_softmax import NUM_BEST, OutputSoftmax, ScoredWords

CHUNK_SIZE = 2**24
"""
Log probabilities of a chunk in the search for the best words: 64 MiB in float32, a few times over.
"""


@OutputSoftmax.register("adaptive")
class AdaptiveSoftmax(OutputSoftmax):
    """
    Scores frequent words from the states themselves, and rare words, in clusters of falling
    frequency, from smaller and smaller projections of the states. In training, a cluster is
    computed only for the targets in it. This is an exact distribution over all words, with fewer
    parameters and less work than `FullSoftmax`.

    Registered as an `OutputSoftmax` with name "adaptive".

    # Parameters

    num_words : `int`
        The size of the vocabulary, whose ids are in order of frequency. Supplied by the language
        model that owns the softmax.
    dim : `int`
        The size of a state. Supplied likewise.
    cutoffs : `List[int]`, optional (default = `None`)
        The ids at which the clusters begin. `None` stands for a twentieth and a quarter of the
        vocabulary.
    div_value : `float`, optional (default = `4.0`)
        Factor by which the size of the states shrinks from cluster to cluster.

    # Raises

    ValueError
        If the cutoffs don't rise from at least 1 to at most `num_words - 1`, or a cluster's states
        would have no dimension left.

    # Source

    Grave et al. 2017; `torch.nn.AdaptiveLogSoftmaxWithLoss`, here with biases.
    """

    wants_frequent_first = True

    def __init__(
        self,
        *,
        num_words: int,
        dim: int,
        cutoffs: Optional[List[int]] = None,
        div_value: float = 4.0,
    ) -> None:
        super().__init__()
        if cutoffs is None:
            cutoffs = sorted({max(1, num_words // 20), max(1, num_words // 4)})
        if not cutoffs or sorted({0, *cutoffs, num_words}) != [0, *cutoffs, num_words]:
            raise ValueError(
                "expected `cutoffs` that rise, above 0 and below the number of words, "
                f"{num_words}, but got {cutoffs}"
            )
        if div_value <= 0 or int(dim // div_value ** len(cutoffs)) < 1:
            raise ValueError(
                f"expected a `div_value` above 0 by which states of {dim} dimensions can be "
                f"divided {len(cutoffs)} times, but got {div_value}"
            )
        self.adaptive = torch.nn.AdaptiveLogSoftmaxWithLoss(
            dim, num_words, cutoffs=cutoffs, div_value=div_value
        )
        # The same layers, but with biases and able to multiply in less precision.
        for name, layer in list(self.adaptive.named_modules()):
            if isinstance(layer, torch.nn.Linear):
                self.adaptive.set_submodule(name, _like(layer))

    def forward(self, states: torch.Tensor, targets: torch.Tensor) -> ScoredWords:
        """
        Always exact. In training `best` is empty: finding it would take longer than everything
        else.
        """
        log_probabilities = self.adaptive(states, targets).output  # (predicted,)
        losses = -log_probabilities
        loss = losses.sum() / max(len(losses), 1)
        best = targets.new_empty(len(targets), 0) if self.training else self._best(states)
        return ScoredWords(loss, losses.detach(), best, is_exact=True)

    def log_probabilities(self, states: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.adaptive.log_prob(states)
        return found

    @torch.no_grad()
    def _best(self, states: torch.Tensor) -> torch.Tensor:
        """The most probable words, best first. Shape `(predicted, 5)`, or fewer columns."""
        chunks = states.split(max(1, CHUNK_SIZE // self.adaptive.head_size))
        return torch.cat([self._best_of_chunk(chunk) for chunk in chunks])

    def _best_of_chunk(self, states: torch.Tensor) -> torch.Tensor:
        """
        The most probable words of a chunk of states. No word is more probable than its cluster, so
        a cluster is searched only for the states where it may hold better words than the clusters
        before.
        """
        adaptive = self.adaptive
        wanted = min(NUM_BEST, adaptive.n_classes)
        head = torch.log_softmax(adaptive.head(states), dim=1)
        frequent, clusters = head.split([adaptive.shortlist_size, adaptive.n_clusters], dim=1)
        best = _padded(top_scores(frequent, min(wanted, adaptive.shortlist_size)), wanted)
        for place, tail in enumerate(adaptive.tail):
            first, end = adaptive.cutoffs[place : place + 2]
            rows = (clusters[:, place] > best.values[:, -1]).nonzero().squeeze(1)
            # A split of no rows would still have one part.
            for some in rows.split(max(1, CHUNK_SIZE // (end - first))) if len(rows) else ():
                within = torch.log_softmax(tail(states[some]), dim=1)
                top = top_scores(within, min(wanted, end - first))
                found = top.values + clusters[some, place].unsqueeze(1)
                values = torch.cat([best.values[some], found], dim=1)
                words = torch.cat([best.indices[some], first + top.indices], dim=1)
                best.values[some], order = values.topk(wanted)
                best.indices[some] = words.gather(1, order)
        return best.indices


def _padded(top: TopScores, wanted: int) -> TopScores:
    """Pads to `wanted` columns with scores of minus infinity."""
    missing = (0, wanted - top.values.size(1))
    pad = torch.nn.functional.pad
    return TopScores(pad(top.values, missing, value=-math.inf), pad(top.indices, missing))


def _like(linear: torch.nn.Linear) -> Linear:
    """A layer with a bias, the same initial weights, and exact products in evaluation."""
    affine = Linear(linear.in_features, linear.out_features)
    affine.weight.data = linear.weight.data
    affine.rounds_in_evaluation = False
    return affine
