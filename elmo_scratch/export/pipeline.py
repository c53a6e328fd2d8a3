"""Batches of an export: read, embedded and written in overlapping threads."""

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event
from typing import (
    Any,
    Callable,
    Deque,
    Generator,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    TypeVar,
)

import torch
from allennlp.common.util import lazy_groups_of

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.embedders.sentences import IndexedBatch
from elmo_scratch.embedders.sentences.memory_fitting import split_ragged_batch
from elmo_scratch.export.plan import ExportSettings, Span, State
from elmo_scratch.export.text import InputText, Sentence

Batch = List[Sentence]

BATCHES_SORTED_AT_ONCE = 32
"""Among the sentences of so many batches those of like length are found."""

SENTENCES_SORTED_AT_ONCE, TOKENS_SORTED_AT_ONCE = 2**13, 2**20
"""
At most, however large a batch is: the words of all lie in memory, and a part of an export ends only
where they do.
"""


def blocks_of_batches(
    sentences: Iterable[Sentence], settings: ExportSettings, is_carried: bool
) -> Iterator[List[Batch]]:
    """
    Sentences in their order, a block after the other. Where states are carried, a block is one
    batch, its sentences in their order, because vectors depend on it. Otherwise the sentences of a
    block are batched by length: a batch takes as long as its longest sentence.

    # Parameters

    sentences : `Iterable[Sentence]`
        In the order of the text.
    settings : `ExportSettings`
        `batch_size` and `max_tokens` count.
    is_carried : `bool`
        Whether states are carried from batch to batch.

    # Returns

    `Iterator[List[List[Sentence]]]`
        The batches of each block.
    """
    if is_carried:
        for batch in lazy_groups_of(sentences, settings.batch_size):
            yield [batch]
        return
    for block in _blocks(sentences, settings):
        # The longest first: if memory doesn't suffice, that shows at once.
        yield list(_filled(sorted(block, key=_length, reverse=True), settings))


def _blocks(sentences: Iterable[Sentence], settings: ExportSettings) -> Iterator[List[Sentence]]:
    """Sentences enough for `BATCHES_SORTED_AT_ONCE` batches, or for one of the largest."""
    enough = SENTENCES_SORTED_AT_ONCE
    enough_tokens = TOKENS_SORTED_AT_ONCE
    if settings.max_tokens is None:
        a_block = BATCHES_SORTED_AT_ONCE * settings.batch_size
        enough = max(settings.batch_size, min(a_block, enough))
    else:
        a_block = BATCHES_SORTED_AT_ONCE * settings.max_tokens
        enough_tokens = max(settings.max_tokens, min(a_block, enough_tokens))
    block: List[Sentence] = []
    tokens = 0
    for sentence in sentences:
        block.append(sentence)
        tokens += _length(sentence)
        if len(block) >= enough or tokens >= enough_tokens:
            yield block
            block, tokens = [], 0
    if block:
        yield block


def _filled(sentences: List[Sentence], settings: ExportSettings) -> Iterator[Batch]:
    """Batches of sentences, of which the first is the longest of each."""
    batch: Batch = []
    for sentence in sentences:
        if batch and _is_full(batch, settings):
            yield batch
            batch = []
        batch.append(sentence)
    if batch:
        yield batch


def _is_full(batch: Batch, settings: ExportSettings) -> bool:
    """Whether there is no room for one sentence more."""
    if settings.max_tokens is None:
        return len(batch) >= settings.batch_size
    return (len(batch) + 1) * _length(batch[0]) > settings.max_tokens


def _length(sentence: Sentence) -> int:
    return len(sentence.tokens)


Item = TypeVar("Item")
Step = TypeVar("Step")

DEPTH = 2
"""
How many items wait between two threads. What waits takes memory; more than keeps both sides busy is
of no use.
"""

SECONDS_TO_LOOK_AGAIN = 0.1


def run_ahead(items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """
    Yields the items of a generator that runs up to `DEPTH` of them ahead, in a thread. What it
    raises is raised here, in its turn; it is closed when this one is.
    """
    end = object()
    waiting: Deque["Future[Any]"] = deque()
    thread = _started_thread()
    try:
        while True:
            while len(waiting) < DEPTH:
                waiting.append(thread.submit(next, items, end))
            item = waiting.popleft().result()
            if item is end:
                return
            yield item
    finally:
        for future in waiting:
            future.cancel()
        _wait_for(thread)
        items.close()


class Abandoned(Exception):
    """What a consumer gets in place of an item when there was an error before it."""


def consume_behind(
    steps: Generator[Step, None, None],
    make: Callable[[Step], Item],
    consume: Callable[[Iterator[Item]], None],
    depth: int = DEPTH,
) -> None:
    """
    Makes an item of each step, and runs `consume(items)` in a thread behind. The generator runs in
    this thread, and is closed in the end. An error on either side ends both and is raised here,
    when both have ended.

    # Parameters

    steps : `Generator[Step, None, None]`
        What there is to do. The next one is taken while items are still consumed.
    make : `Callable[[Step], Item]`
        Makes an item of a step, in this thread.
    consume : `Callable[[Iterator[Item]], None]`
        Is given all items.
    depth : `int`, optional (default = `DEPTH`)
        How many items wait or are consumed, at most, while one is made. With 0 `make` and `consume`
        take turns.
    """
    queue: "SimpleQueue[Any]" = SimpleQueue()
    nothing, end = object(), object()
    # What Ctrl-C can't leave half done, as it can a semaphore.
    room: "SimpleQueue[None]" = SimpleQueue()
    for _ in range(depth + 1):
        room.put(None)
    ended = Event()
    is_whole = is_abandoned = False

    def received() -> Iterator[Item]:
        while True:
            try:
                item = queue.get(timeout=SECONDS_TO_LOOK_AGAIN)
            except Empty:
                item = nothing
            if is_abandoned:
                raise Abandoned
            if item is end:
                return
            if item is not nothing:
                yield item
                # Memory for another one is taken as soon as there is room.
                del item
                room.put(None)

    def consume_all() -> None:
        try:
            consume(received())
        finally:
            ended.set()
            room.put(None)

    thread = _started_thread()
    try:
        consumed = thread.submit(consume_all)
        for step in steps:
            if not _has_room(room, ended):
                break
            queue.put(make(step))
        queue.put(end)
        is_whole = True
    finally:
        # Nothing that another Ctrl-C could come into stands before this.
        is_abandoned = not is_whole
        try:
            steps.close()
        finally:
            _wait_for(thread)
    consumed.result()


def _started_thread() -> ThreadPoolExecutor:
    """
    An executor whose one thread runs already. One that starts its thread when work comes forgets
    the thread, and then doesn't wait for it, if Ctrl-C comes in that moment.
    """
    thread = ThreadPoolExecutor(1)
    thread.submit(int).result()
    return thread


def _wait_for(thread: ThreadPoolExecutor) -> None:
    """
    Until it has ended what it is at. Ctrl-C comes through after that: who goes on before would let
    go of files that the thread writes to.
    """
    interruption: Optional[KeyboardInterrupt] = None
    while True:
        try:
            thread.shutdown(wait=True)
            break
        except KeyboardInterrupt as another:
            interruption = another
    if interruption is not None:
        raise interruption


def _has_room(room: "SimpleQueue[None]", ended: Event) -> bool:
    """Waits until there is room for an item more; false if nobody takes any."""
    while not ended.is_set():
        with suppress(Empty):
            room.get(timeout=SECONDS_TO_LOOK_AGAIN)
            break
    return not ended.is_set()


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
    spelled : `IndexedBatch`
        Their words.
    first_row : `int`
        The number of the first of them in its batch.
    stop : `Optional[int]`
        Given where all sentences before that number have been spelled with these.
    """

    sentences: Batch
    spelled: IndexedBatch
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
            for rows in split_ragged_batch([len(sentence.tokens) for sentence in batch])
        ]
        for number, (sentences, first_row) in enumerate(steps, start=1):
            spelled = layers.spell([sentence.tokens for sentence in sentences])
            is_last = number == len(steps)
            yield SpelledStep(sentences, spelled, first_row, stop if is_last else None)
