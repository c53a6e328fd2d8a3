"""Output softmaxes: how a language model scores the words of its vocabulary."""

import math
from abc import ABC, abstractmethod
from typing import List, NamedTuple, Optional

import torch
from allennlp.common import Registrable
from allennlp.common.util import is_distributed
from torch.nn.functional import pad

from elmo_scratch.kernels import (
    Linear,
    MixedPrecision,
    TopScores,
    averaged_rows,
    chunked_cross_entropy,
    rows_of_all_workers,
    sparse_rows,
    top_scores,
)

NUM_BEST = 5
"""How many of the most probable words are reported, for the top-5 accuracy."""


class ScoredWords(NamedTuple):
    """
    The losses and the best words of a number of predictions.

    # Parameters

    loss : `torch.Tensor`
        Shape `()`: the mean loss of a target, in nats, to train with.
    losses : `torch.Tensor`
        Shape `(predicted,)`: the negative log probability of each target, in nats, without
        gradient. Only to be reported if `is_exact`.
    best : `torch.Tensor`
        Shape `(predicted, 5)`, or fewer columns with fewer words: the most probable words, best
        first. In training the shape may be `(predicted, 0)`, if finding them takes too long.
    is_exact : `bool`
        Whether `losses` are those of the distribution over the whole vocabulary. Always true in
        evaluation; in training false if only a part of the vocabulary was scored.
    """

    loss: torch.Tensor
    losses: torch.Tensor
    best: torch.Tensor
    is_exact: bool


class OutputSoftmax(torch.nn.Module, Registrable, ABC):
    """A distribution over the words of a vocabulary, given a state of the biLM. Abstract."""

    wants_frequent_first: bool
    """Whether the ids of words must be in order of frequency."""

    @abstractmethod
    def forward(self, states: torch.Tensor, targets: torch.Tensor) -> ScoredWords:
        """
        # Parameters

        states : `torch.Tensor`
            Shape `(predicted, dim)`.
        targets : `torch.Tensor`
            Shape `(predicted,)`: the id of the word at each place.
        """

    def log_probabilities(self, states: torch.Tensor) -> torch.Tensor:
        """
        The whole distribution at each place, the one that `forward` measures in evaluation.

        # Parameters

        states : `torch.Tensor`
            Shape `(predicted, dim)`.

        # Returns

        `torch.Tensor`
            Shape `(predicted, words)`, in nats; minus infinity for what is never predicted.

        # Raises

        NotImplementedError
            If the softmax, one of another package, leaves this out: nothing but the list of likely
            words of `allennlp elmo-score` asks for it.
        """
        raise NotImplementedError

    def average_gradients(self) -> List[str]:
        """
        Lets the softmax average gradients over the workers of a distributed training by itself, if
        it can do so at less cost than `DistributedDataParallel`.

        # Returns

        `List[str]`
            The names of the parameters that the softmax averages from now on. The caller must
            exclude them from `DistributedDataParallel`. At the first batch each worker gets the
            first worker's values.
        """
        return []


@OutputSoftmax.register("full")
class FullSoftmax(OutputSoftmax, MixedPrecision):
    """
    One weight vector and one bias a word. In training its products may run in less precision:
    scores are then rounded, but the losses are computed in full precision. Nothing is rounded in
    evaluation.

    Registered as an `OutputSoftmax` with name "full".

    # Parameters

    num_words : `int`
        The size of the vocabulary. Supplied by the language model that owns the softmax.
    dim : `int`
        The size of a state. Supplied likewise.
    """

    rounds_in_evaluation = False
    wants_frequent_first = False

    def __init__(self, *, num_words: int, dim: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(num_words, dim))
        self.bias = torch.nn.Parameter(torch.zeros(num_words))
        torch.nn.init.normal_(self.weight, std=dim**-0.5)

    def forward(self, states: torch.Tensor, targets: torch.Tensor) -> ScoredWords:
        """Always exact."""
        dtype = self.matmul_dtype_for(self.weight)
        scored = chunked_cross_entropy(
            states, self.weight, self.bias, targets, dtype=dtype, num_best=NUM_BEST
        )
        return ScoredWords(*scored, is_exact=True)

    def log_probabilities(self, states: torch.Tensor) -> torch.Tensor:
        scores = torch.nn.functional.linear(states, self.weight, self.bias)  # (predicted, words)
        return torch.log_softmax(scores, dim=1)


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


PADDING = 0
"""The id of AllenNLP's padding."""

WORDS_TOGETHER = 128
"""
The words of a batch are padded to a multiple of this. oneDNN compiles and keeps kernels for each
number of words; without padding they came to half a gigabyte.
"""


@OutputSoftmax.register("sampled")
class SampledSoftmax(OutputSoftmax, MixedPrecision, torch.nn.Embedding):
    """
    One weight vector and one bias a word, with the same names as in `FullSoftmax`. In training, a
    target competes only with the words that `LogUniformSampler` draws for the whole batch. The
    logarithm of the expected count is subtracted from each score, so that words that are drawn
    often count no more than others; a target that was drawn competes with itself only once. In
    evaluation the softmax is exact.

    Registered as an `OutputSoftmax` with name "sampled".

    It is an `Embedding` for the attributes `weight` and `sparse`. Workers of a distributed training
    draw the same words if they start in the same state; `DistributedDataParallel` gives them the
    first one's.

    # Parameters

    num_words : `int`
        The size of the vocabulary, whose ids are in order of frequency, padding first. Supplied by
        the language model that owns the softmax.
    dim : `int`
        The size of a state. Supplied likewise.
    num_samples : `int`, optional (default = `8192`, the released models' value)
        How many words are drawn for a batch.
    sparse : `bool`, optional (default = `True`)
        Whether gradients hold only the rows of the words in use. This needs an optimizer that takes
        sparse gradients beside dense ones: "elmo_scratch_adagrad", or AllenNLP's "adagrad" or
        "dense_sparse_adam". In distributed training, with `average_gradients`, as `LanguageModel`
        asks for, workers exchange gradients only for the words that any of them uses. Otherwise
        gradients are dense there: NCCL doesn't support sparse gradients in
        `DistributedDataParallel`, and with gloo workers crashed because of corrupted memory.

    # Raises

    ValueError
        If there are fewer words than are to be drawn.

    # Source

    Jean et al. 2015; `tf.nn.sampled_softmax_loss` with `remove_accidental_hits=True`, as used by
    `bilm-tf`.
    """

    rounds_in_evaluation = False
    wants_frequent_first = True

    def __init__(
        self, *, num_words: int, dim: int, num_samples: int = 8192, sparse: bool = True
    ) -> None:
        super().__init__(num_words, dim, sparse=sparse and not is_distributed())
        self._can_average = sparse and is_distributed()
        self._averages = self._began_alike = False
        self.bias = torch.nn.Parameter(torch.zeros(num_words))
        self.sampler = LogUniformSampler(num_words=num_words, num_samples=num_samples)
        torch.nn.init.normal_(self.weight, std=dim**-0.5)

    def average_gradients(self) -> List[str]:
        """Averages all gradients in distributed training if they are sparse, else none."""
        self._averages = self._can_average
        return [name for name, _ in self.named_parameters()] if self._averages else []

    def forward(  # type: ignore[override]
        self, states: torch.Tensor, targets: torch.Tensor
    ) -> ScoredWords:
        """
        Targets must not be padding. Exact in evaluation. In training `losses` are those of the
        sampled softmax, and `best` is empty.
        """
        dtype = self.matmul_dtype_for(self.weight)
        if not self.training:
            scored = chunked_cross_entropy(
                states,
                self.weight,
                self.bias,
                targets,
                dtype=dtype,
                num_best=NUM_BEST,
                # Padding is never drawn, so its score has not been trained to be low.
                only_targets=targets.new_full((1,), PADDING),
            )
            return ScoredWords(*scored, is_exact=True)
        sampled = self.sampler()
        rows = torch.cat([sampled.ids, targets]).unique()  # (rows,), in rising order
        is_sampled = torch.zeros_like(rows, dtype=torch.bool)
        is_sampled[torch.searchsorted(rows, sampled.ids)] = True
        log_counts = self.sampler.log_expected_counts(rows, sampled.num_tries)
        of_all = self._of_all_workers(rows)
        weight = self._rows_of(self.weight, rows, of_all)
        bias = self._rows_of(self.bias, rows, of_all) - log_counts.to(self.bias.dtype)
        missing = -len(rows) % WORDS_TOGETHER
        scored = chunked_cross_entropy(
            states,
            pad(weight, (0, 0, 0, missing)),
            pad(bias, (0, missing), value=-torch.inf),
            torch.searchsorted(rows, targets),
            dtype=dtype,
            num_best=1,
            only_targets=(~is_sampled).nonzero().squeeze(1),
        )
        none = targets.new_empty(len(targets), 0)
        return ScoredWords(scored.loss, scored.losses, best=none, is_exact=False)

    def log_probabilities(self, states: torch.Tensor) -> torch.Tensor:
        scores = torch.nn.functional.linear(states, self.weight, self.bias)  # (predicted, words)
        scores[:, PADDING] = -torch.inf
        return torch.log_softmax(scores, dim=1)

    def _of_all_workers(self, rows: torch.Tensor) -> Optional[torch.Tensor]:
        """The rows that any worker uses; `None` if gradients are not averaged here."""
        if not self._averages:
            return None
        if not self._began_alike:
            for parameter in self.parameters():
                torch.distributed.broadcast(parameter.detach(), src=0)
            self._began_alike = True
        return rows_of_all_workers(rows, self.num_embeddings)

    def _rows_of(
        self, parameter: torch.Tensor, rows: torch.Tensor, of_all: Optional[torch.Tensor]
    ) -> torch.Tensor:
        """The rows of a parameter. `rows` must be in rising order."""
        if of_all is not None:
            return averaged_rows(parameter, rows, of_all)
        if self.sparse:
            return sparse_rows(parameter, rows)
        return parameter.index_select(0, rows)


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
