"""Batches that are split until they fit into the device's memory."""

import logging
from typing import Iterable, Iterator, List, Optional, Sequence

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.util import lazy_groups_of

from elmo_scratch.data.spelling import check_sentences
from elmo_scratch.embedders.sentences.indexers import IndexedBatch
from elmo_scratch.kernels import LstmState
from elmo_scratch.modules.bilm import BiLm, ReadSentences, read_in_pieces
from elmo_scratch.modules.lstm import ProjectedLstm
from elmo_scratch.modules.sequences import remove_boundaries
from elmo_scratch.modules.token_encoders import CharCnnEncoder, EncodedTokens

MAX_POSITIONS_LAID = 2**16
"""
How many positions a batch of layers may have, padding included, unless one sentence has more. With
the released original model they take 800 MB.
"""

WARM_UP_AT_ONCE = 64
"""How many sentences' words are encoded together during a warm-up."""


def split_ragged_batch(lengths: Sequence[int]) -> Iterator[slice]:
    """
    Splits a batch in which one long sentence would pad all others out of proportion, given the
    number of tokens of each sentence. Yields slices in order, each of at least one sentence and of
    no more positions than `MAX_POSITIONS_LAID` otherwise.
    """
    first = longest = 0
    for row, length in enumerate(lengths):
        longest = max(longest, length)
        # Each sentence has two marks.
        if row > first and (row + 1 - first) * (longest + 2) > MAX_POSITIONS_LAID:
            yield slice(first, row)
            first, longest = row, length
    if first < len(lengths):
        yield slice(first, len(lengths))


def warm_up_batches(sentences: Iterable[Sequence[str]]) -> Iterator[List[List[str]]]:
    """
    Yields the sentences of a text to warm up with, `WARM_UP_AT_ONCE` at a time, or fewer where one
    is very long. Raises `ValueError` as `check_sentences` does.
    """
    for number, group in enumerate(lazy_groups_of(sentences, WARM_UP_AT_ONCE)):
        check_sentences(group, number * WARM_UP_AT_ONCE)
        words = [list(sentence) for sentence in group]
        for rows in split_ragged_batch(list(map(len, words))):
            yield words[rows]


logger = logging.getLogger(__name__)

MAX_POSITIONS_AT_ONCE = 2**13
"""
How many positions of a batch are read in one go; a larger batch is read in pieces. With the
released original model a piece takes some 100 MiB.
"""


ALLOCATION_FAILURES = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""The names that cuBLAS and cuDNN give to a lack of memory."""


class OutOfMemorySplitter:
    """
    Reads batches with a biLM in evaluation mode, `positions_at_once` positions at most in one go.
    When a batch doesn't fit into a GPU's memory, it reads half of the sentences, in pieces half as
    long, from then on; each row keeps its own state.
    """

    def __init__(self, bilm: BiLm, positions_at_once: int = MAX_POSITIONS_AT_ONCE) -> None:
        self._bilm = bilm
        self._positions_at_once = positions_at_once
        self._rows_at_once: Optional[int] = None

    def read(self, batch: IndexedBatch, first_row: int = 0) -> torch.Tensor:
        """
        Returns the layers of a batch of at least one sentence, on the CPU, shape `(layers, batch,
        tokens, width)`, zero where a sentence has ended. `first_row` is as in `StateMemory.start`.

        Raises `ConfigurationError` if no part of the batch fits into the GPU's memory, `ValueError`
        if the `warm` state is not known.
        """
        memory, num_rows = self._bilm.state_memory, len(batch.lengths)
        start = memory.start(next(self._bilm.parameters()), num_rows, first_row)
        parts: List[torch.Tensor] = []
        finals: List[LstmState] = []
        first = 0
        while first < num_rows:
            last = min(num_rows, first + (self._rows_at_once or num_rows))
            read = self._read_if_it_fits(batch, start, first, last)
            if read is None:
                self._halve(last - first)
                continue
            parts.append(read.output.layers)
            finals.append(read.state)
            first = last
        is_whole = len(parts) == 1
        final = finals[0] if is_whole else LstmState(*(torch.cat(of, 1) for of in zip(*finals)))
        memory.keep(final, first_row)
        layers = remove_boundaries(parts[0] if is_whole else _put_together(parts))
        lengths = torch.tensor(batch.lengths, device="cpu")
        shorter = (lengths < layers.size(2)).nonzero().squeeze(1)
        # The end marks lie there.
        layers[:, shorter, lengths[shorter]] = 0.0
        return layers

    def _read_if_it_fits(
        self, batch: IndexedBatch, start: LstmState, first: int, last: int
    ) -> Optional[ReadSentences]:
        """
        Reads some of the sentences, onto the CPU; returns `None` if they don't fit into a GPU's
        memory.
        """
        try:
            if last - first == len(batch.lengths):
                return self._read(batch, start)
            rows = torch.arange(first, last, device=start.hidden.device)
            return self._read(batch.rows(first, last), start.rows(rows))
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
            # The memory of the failed try is freed only outside of this block.
            return None

    def _read(self, batch: IndexedBatch, start: LstmState) -> ReadSentences:
        """Reads all sentences of a batch, onto the CPU."""
        num_sentences, longest = batch.mask.shape
        if num_sentences * (longest + 2) > self._positions_at_once:
            ids = batch.token_ids()
            return read_in_pieces(self._bilm, ids, batch.mask, start, self._positions_at_once)
        tokens = self._encoded(batch, start.hidden.device)
        output, final = self._bilm.read_tokens(tokens, start)
        return ReadSentences(output._replace(layers=output.layers.cpu()), final)

    def _encoded(self, batch: IndexedBatch, device: torch.device) -> EncodedTokens:
        """Returns the token layer."""
        encoder, mask = self._bilm.token_encoder, batch.mask.to(device)
        if batch.words is not None and isinstance(encoder, CharCnnEncoder):
            return encoder.encode_laid(batch.words.to(device), batch.ids.to(device), mask)
        return encoder(batch.token_ids().to(device), mask)

    def _halve(self, num_rows: int) -> None:
        """
        Halves the sentences and positions that are read at once, after `num_rows` sentences didn't
        fit; raises `ConfigurationError` if there is nothing to halve.
        """
        if num_rows == 1 and self._positions_at_once == 1:
            raise ConfigurationError(
                "the GPU's memory doesn't hold the work on a single word. Free some of it, take "
                "another GPU, or the processor (`cuda_device` -1)."
            )
        for module in self._bilm.modules():
            if isinstance(module, ProjectedLstm):
                module.forget_recordings()
        torch.cuda.empty_cache()
        self._rows_at_once = max(1, num_rows // 2)
        self._positions_at_once = max(1, self._positions_at_once // 2)
        logger.warning(
            "the GPU's memory does not hold a batch; it is read in parts of %d sentences and %d "
            "positions from now on",
            self._rows_at_once,
            self._positions_at_once,
        )


def _is_out_of_memory(error: RuntimeError) -> bool:
    """Whether a GPU is out of memory. cuBLAS and cuDNN report it in words of their own."""
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(
        name in str(error) for name in ALLOCATION_FAILURES
    )


def _put_together(parts: List[torch.Tensor]) -> torch.Tensor:
    """Joins parts of a batch, each as long as its longest sentence."""
    num_layers, _, _, width = parts[0].shape
    longest = max(part.size(2) for part in parts)
    layers = torch.zeros(
        num_layers, sum(part.size(1) for part in parts), longest, width, device="cpu"
    )
    first = 0
    for part in parts:
        layers[:, first : first + part.size(1), : part.size(2)] = part
        first += part.size(1)
    return layers
