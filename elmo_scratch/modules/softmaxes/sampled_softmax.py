"""A softmax that is trained on samples of the vocabulary."""

from typing import List, Optional

import torch
from allennlp.common.util import is_distributed
from torch.nn.functional import pad

from elmo_scratch.kernels import (
    MixedPrecision,
    averaged_rows,
    chunked_cross_entropy,
    rows_of_all_workers,
    sparse_rows,
)
from elmo_scratch.modules.softmaxes.log_uniform_sampler import LogUniformSampler
from elmo_scratch.modules.softmaxes.output_softmax import NUM_BEST, OutputSoftmax, ScoredWords

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
