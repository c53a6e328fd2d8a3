"""A softmax that is trained on a sample of the vocabulary."""

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

WORDS_TOGETHER = 128
"""
To a multiple of so many the words in play are filled up. Another number of them in each batch would
let oneDNN compile and keep other kernels for each, which came to half a gigabyte.
"""


@OutputSoftmax.register("sampled")
class SampledSoftmax(OutputSoftmax, MixedPrecision, torch.nn.Embedding):
    """
    One weight vector and one bias a word, as of `FullSoftmax` and under the same names. In
    training, a target competes only with the words that `LogUniformSampler` draws for the whole
    batch. From all their scores the logarithm of the expected count is taken away, so that words
    which are drawn often count no more than others; a target that was drawn competes with itself
    only once. In evaluation, the softmax is exact.

    Registered as an `OutputSoftmax` with name "sampled".

    It is an `Embedding` for the sake of its `weight` and `sparse`. Workers of a distributed
    training that begin in the same state draw the same words; `DistributedDataParallel` gives them
    that of the first.

    # Parameters

    num_words : `int`
        The size of the vocabulary, whose ids are in order of frequency, padding first. The language
        model that owns the softmax supplies it.
    dim : `int`
        The size of a state. Supplied likewise.
    num_samples : `int`, optional (default = `8192`, the released models' value)
        How many words are drawn for a batch.
    sparse : `bool`, optional (default = `True`)
        Whether gradients hold only the rows of the words in play, for optimizers that then change
        only those and take dense ones beside them: "elmo_scratch_adagrad" and AllenNLP's "adagrad"
        and "dense_sparse_adam". Others need `False`. In distributed training the rows are those of
        all workers, who exchange them alone, if the softmax is asked for `average_gradients`, as
        `LanguageModel` does; otherwise gradients are dense there: of sparse ones in
        `DistributedDataParallel` NCCL knows nothing, and with gloo workers were seen to die of
        damaged memory.

    # Raises

    ValueError
        If there are not as many words as shall be drawn.

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
        """
        # Returns

        `List[str]`
            In distributed training with sparse gradients those of all parameters, else none.
        """
        self._averages = self._can_average
        return [name for name, _ in self.named_parameters()] if self._averages else []

    def forward(  # type: ignore[override]
        self, states: torch.Tensor, targets: torch.Tensor
    ) -> ScoredWords:
        """
        # Parameters

        states : `torch.Tensor`
            Shape `(predicted, dim)`.
        targets : `torch.Tensor`
            Shape `(predicted,)`, without padding.

        # Returns

        `ScoredWords`
            Exact in evaluation. In training `losses` are those of the sampled softmax, and `best`
            is empty.
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
                # Padding is never drawn, so that nothing has taught it to be improbable.
                only_targets=targets.new_zeros(1),
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

    def _of_all_workers(self, rows: torch.Tensor) -> Optional[torch.Tensor]:
        """The rows of all workers, given those of this one, where gradients are averaged here."""
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
        """The chosen rows, which must rise."""
        if of_all is not None:
            return averaged_rows(parameter, rows, of_all)
        if self.sparse:
            return sparse_rows(parameter, rows)
        return parameter.index_select(0, rows)
