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
How many positions a batch of layers may have, with what fills its shorter sentences up; unless one
sentence has more. With the released original model they take 800 MB.
"""

WARM_UP_AT_ONCE = 64
"""Sentences whose words are encoded together while a text warms the biLM up."""


def split_ragged_batch(lengths: Sequence[int]) -> Iterator[slice]:
    """
    Cuts a batch where one sentence is so long that all others, filled up to its length, would take
    memory out of proportion.

    # Parameters

    lengths : `Sequence[int]`
        How many tokens each sentence has.

    # Returns

    `Iterator[slice]`
        The sentences of each group, in their order: at least one, and no more than
        `MAX_POSITIONS_LAID` allows.
    """
    first = longest = 0
    for row, length in enumerate(lengths):
        longest = max(longest, length)
        # Each has its two marks.
        if row > first and (row + 1 - first) * (longest + 2) > MAX_POSITIONS_LAID:
            yield slice(first, row)
            first, longest = row, length
    if first < len(lengths):
        yield slice(first, len(lengths))


def warm_up_batches(sentences: Iterable[Sequence[str]]) -> Iterator[List[List[str]]]:
    """
    # Parameters

    sentences : `Iterable[Sequence[str]]`
        The words of each sentence of a text to warm up with, in its order.

    # Returns

    `Iterator[List[List[str]]]`
        The same, `WARM_UP_AT_ONCE` at a time, or fewer where one is very long.

    # Raises

    ValueError
        As `check_sentences` does.
    """
    for number, group in enumerate(lazy_groups_of(sentences, WARM_UP_AT_ONCE)):
        check_sentences(group, number * WARM_UP_AT_ONCE)
        words = [list(sentence) for sentence in group]
        for rows in split_ragged_batch(list(map(len, words))):
            yield words[rows]


logger = logging.getLogger(__name__)

MAX_POSITIONS_AT_ONCE = 2**13
"""How many positions of a batch are read in one go; what has more is read in pieces. With the
released original model a piece takes some 100 MiB."""


ALLOCATION_FAILURES = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")
"""How cuBLAS and cuDNN call it that there is no memory."""


class OutOfMemorySplitter:
    """
    Reads batches. Where a GPU's memory doesn't hold a batch, it reads half of the sentences, and
    pieces half as long, from then on; each row keeps the state that is its own.

    # Parameters

    bilm : `BiLm`
        In evaluation mode.
    positions_at_once : `int`, optional (default = `MAX_POSITIONS_AT_ONCE`)
        How many positions to read in one go at most.
    """

    def __init__(self, bilm: BiLm, positions_at_once: int = MAX_POSITIONS_AT_ONCE) -> None:
        self._bilm = bilm
        self._positions_at_once = positions_at_once
        self._rows_at_once: Optional[int] = None

    def read(self, batch: IndexedBatch, first_row: int = 0) -> torch.Tensor:
        """
        # Parameters

        batch : `IndexedBatch`
            At least one sentence.
        first_row : `int`, optional (default = `0`)
            As in `StateMemory.start`.

        # Returns

        `torch.Tensor`
            On the CPU, shape `(layers, batch, tokens, width)`, zero where a sentence has ended.

        # Raises

        ConfigurationError
            If the GPU's memory holds no part of the batch.
        ValueError
            If the `warm` state is not known.
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
        # There lie their end marks.
        layers[:, shorter, lengths[shorter]] = 0.0
        return layers

    def _read_if_it_fits(
        self, batch: IndexedBatch, start: LstmState, first: int, last: int
    ) -> Optional[ReadSentences]:
        """Some of the sentences, on the CPU; `None` if a GPU's memory doesn't hold them."""
        try:
            if last - first == len(batch.lengths):
                return self._read(batch, start)
            rows = torch.arange(first, last, device=start.hidden.device)
            return self._read(batch.rows(first, last), start.rows(rows))
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
            # What the failed try holds is let go of only outside of this block.
            return None

    def _read(self, batch: IndexedBatch, start: LstmState) -> ReadSentences:
        """All sentences of a batch, on the CPU."""
        num_sentences, longest = batch.mask.shape
        if num_sentences * (longest + 2) > self._positions_at_once:
            ids = batch.token_ids()
            return read_in_pieces(self._bilm, ids, batch.mask, start, self._positions_at_once)
        tokens = self._encoded(batch, start.hidden.device)
        output, final = self._bilm.read_from(start, tokens)
        return ReadSentences(output._replace(layers=output.layers.cpu()), final)

    def _encoded(self, batch: IndexedBatch, device: torch.device) -> EncodedTokens:
        """The token layer."""
        encoder, mask = self._bilm.token_encoder, batch.mask.to(device)
        if batch.words is not None and isinstance(encoder, CharCnnEncoder):
            return encoder.encode_laid(batch.words.to(device), batch.ids.to(device), mask)
        return encoder(batch.token_ids().to(device), mask)

    def _halve(self, num_rows: int) -> None:
        """Reads less at once from now on than `num_rows` sentences, or says that it can't."""
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
    """Whether a GPU's memory is at its end. Libraries of products say so in words of their own."""
    return isinstance(error, torch.cuda.OutOfMemoryError) or any(
        name in str(error) for name in ALLOCATION_FAILURES
    )


def _put_together(parts: List[torch.Tensor]) -> torch.Tensor:
    """Parts of a batch, each as long as its longest sentence, as one."""
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
