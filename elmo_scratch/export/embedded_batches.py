"""From sentences to their layers: reading runs ahead of the biLM."""

import time
from typing import Generator, Iterator, List, NamedTuple, Optional

import torch

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.embedders.laid_rows import row_groups
from elmo_scratch.embedders.sentence_layers import SpelledBatch
from elmo_scratch.export.batches import Batch, blocks_of_batches
from elmo_scratch.export.export_settings import ExportSettings
from elmo_scratch.export.input_text import InputText
from elmo_scratch.export.part_folder import Span, State
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


class _SpelledStep(NamedTuple):
    """
    Rows of a batch ready for the biLM, the first of which has a number; `stop` where the block ends
    with them, before which sentence.
    """

    sentences: Batch
    spelled: SpelledBatch
    first_row: int
    stop: Optional[int]


def embedded_batches(
    text: InputText,
    span: Span,
    layers: SentenceLayers,
    settings: ExportSettings,
    *,
    seconds_a_part: float,
) -> Generator[EmbeddedBatch, None, None]:
    """
    Embeds a span of a text, from the state in which `layers` is.

    # Parameters

    text : `InputText`
        The text.
    span : `Span`
        Which of its sentences.
    layers : `SentenceLayers`
        The biLM.
    settings : `ExportSettings`
        How sentences are batched.
    seconds_a_part : `float`
        A part ends at the first chance after so many seconds or `SENTENCES_A_PART`, and at the end.
    """
    is_carried = layers.state == "carry"
    start, started = span.start, time.monotonic()
    for step in run_ahead(_spelled(text, span, layers, settings, is_carried)):
        output = layers.read(step.spelled, step.first_row)
        end: Optional[PartEnd] = None
        if step.stop is not None:
            is_late = time.monotonic() - started >= seconds_a_part
            is_full = step.stop - start >= SENTENCES_A_PART
            if is_late or is_full or step.stop == span.stop:
                end = PartEnd(step.stop, layers.carried() if is_carried else None)
                start, started = step.stop, time.monotonic()
        yield EmbeddedBatch(step.sentences, output, end)


def _spelled(
    text: InputText,
    span: Span,
    layers: SentenceLayers,
    settings: ExportSettings,
    is_carried: bool,
) -> Generator[_SpelledStep, None, None]:
    """Reads the text and spells its words."""
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
            yield _SpelledStep(sentences, spelled, first_row, stop if is_last else None)
