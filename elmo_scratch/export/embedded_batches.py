"""From sentences to their layers, step by step."""

import time
from typing import Generator, Iterator, List, NamedTuple, Optional

import torch

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.embedders.sentences import SpelledBatch
from elmo_scratch.embedders.sentences.memory_fitting import row_groups
from elmo_scratch.export.batches import Batch, blocks_of_batches
from elmo_scratch.export.export_settings import ExportSettings
from elmo_scratch.export.part_folder import Span, State
from elmo_scratch.export.text import InputText
from elmo_scratch.export.threads import run_ahead

SENTENCES_A_PART = 2**15
"""Joining parts takes memory for the keys of one, and time: a shorter export has one part alone."""


class PartEnd(NamedTuple):
    """
    Where a part of an export ends.

    # Parameters

    stop : `int`
        The number of the sentence after its last.
    state : `Optional[State]`
        What the next sentence starts from, where states are carried.
    """

    stop: int
    state: Optional[State]


class EmbeddedBatch(NamedTuple):
    """
    # Parameters

    sentences : `List[Sentence]`
        In any order.
    layers : `torch.Tensor`
        Shape `(layers, batch, tokens, width)`.
    end : `Optional[PartEnd]`
        Given with a batch after which a part can be finished.
    """

    sentences: Batch
    layers: torch.Tensor
    end: Optional[PartEnd]


class SpelledStep(NamedTuple):
    """
    Rows of a batch, ready for the biLM.

    # Parameters

    sentences : `List[Sentence]`
        In any order.
    spelled : `SpelledBatch`
        Their words.
    first_row : `int`
        The number of the first of them in its batch.
    stop : `Optional[int]`
        Given where all sentences before that number have been spelled with these.
    """

    sentences: Batch
    spelled: SpelledBatch
    first_row: int
    stop: Optional[int]


def spelled_steps(
    text: InputText, span: Span, layers: SentenceLayers, settings: ExportSettings
) -> Generator[SpelledStep, None, None]:
    """
    Reads a span of a text and spells its words: ahead, in a thread, if there is a processor for it.
    One that PyTorch computes with has nothing to give: the thread would keep Python from the biLM.

    # Parameters

    text : `InputText`
        The text.
    span : `Span`
        Which of its sentences.
    layers : `SentenceLayers`
        The biLM.
    settings : `ExportSettings`
        How sentences are batched.
    """
    steps = _spelled(text, span, layers, settings)
    return run_ahead(steps) if layers.leaves_a_processor else steps


class StepEmbedder:
    """
    Embeds the steps of a span, one after the other.

    # Parameters

    span : `Span`
        Of the text.
    layers : `SentenceLayers`
        The biLM, in the state that the first sentence starts from.
    seconds_a_part : `float`
        A part ends at the first chance after so many seconds or `SENTENCES_A_PART`, and at the end.
    """

    def __init__(self, span: Span, layers: SentenceLayers, seconds_a_part: float) -> None:
        self._stop = span.stop
        self._layers = layers
        self._seconds_a_part = seconds_a_part
        self._begin_part(span.start)

    def __call__(self, step: SpelledStep) -> EmbeddedBatch:
        """
        # Parameters

        step : `SpelledStep`
            The next one of the span.

        # Returns

        `EmbeddedBatch`
        """
        output = self._layers.read(step.spelled, step.first_row)
        end: Optional[PartEnd] = None
        if step.stop is not None and self._ends_part(step.stop):
            is_carried = self._layers.state == "carry"
            end = PartEnd(step.stop, self._layers.carried() if is_carried else None)
            self._begin_part(step.stop)
        return EmbeddedBatch(step.sentences, output, end)

    def _begin_part(self, start: int) -> None:
        self._part_start, self._part_started = start, time.monotonic()

    def _ends_part(self, stop: int) -> bool:
        is_late = time.monotonic() - self._part_started >= self._seconds_a_part
        is_full = stop - self._part_start >= SENTENCES_A_PART
        return is_late or is_full or stop == self._stop


def _spelled(
    text: InputText, span: Span, layers: SentenceLayers, settings: ExportSettings
) -> Generator[SpelledStep, None, None]:
    """As `spelled_steps`, here."""
    is_carried = layers.state == "carry"
    blocks: Iterator[List[Batch]] = blocks_of_batches(text.sentences(*span), settings, is_carried)
    stop = span.start
    for block in blocks:
        stop += sum(map(len, block))
        steps = [
            (batch[rows], rows.start)
            for batch in block
            for rows in row_groups([len(sentence.tokens) for sentence in batch])
        ]
        for number, (sentences, first_row) in enumerate(steps, start=1):
            spelled = layers.spell([sentence.tokens for sentence in sentences])
            is_last = number == len(steps)
            yield SpelledStep(sentences, spelled, first_row, stop if is_last else None)
