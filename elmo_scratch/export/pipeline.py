"""Batches of an export: read, embedded and written in overlapping threads."""

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
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

from elmo_scratch.data.spelling import IndexedBatch, split_ragged_batch
from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.plan import ExportSettings, Span, State
from elmo_scratch.export.text import InputText, Sentence

Batch = List[Sentence]

BATCHES_SORTED_AT_ONCE = 32
"""Sentences are sorted by length among those of so many batches."""

SENTENCES_SORTED_AT_ONCE, TOKENS_SORTED_AT_ONCE = 2**13, 2**20
"""
The most sentences and tokens of a block, however large a batch is: the words of a block lie in
memory, and a part of an export only ends with a block.
"""


def blocks_of_batches(
    sentences: Iterable[Sentence], settings: ExportSettings, is_carried: bool
) -> Iterator[List[Batch]]:
    """
    Yields the batches of each block of sentences; the blocks are in the order of the text. Where
    states are carried, a block is one batch with its sentences in order, because vectors depend on
    it. Otherwise the sentences of a block are batched by length, since a batch takes as long as its
    longest sentence. `batch_size` and `max_tokens` of `settings` bound the batches.
    """
    if is_carried:
        for batch in lazy_groups_of(sentences, settings.batch_size):
            yield [batch]
        return
    for block in _blocks(sentences, settings):
        # The longest come first: too little memory shows at once.
        yield list(_full_batches(sorted(block, key=_length, reverse=True), settings))


def _blocks(sentences: Iterable[Sentence], settings: ExportSettings) -> Iterator[List[Sentence]]:
    """Yields sentences for `BATCHES_SORTED_AT_ONCE` batches, or for one of the largest."""
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


def _full_batches(sentences: List[Sentence], settings: ExportSettings) -> Iterator[Batch]:
    """Yields batches whose first sentence is their longest."""
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
How many items wait between two threads. Waiting items take memory; a few keep both sides busy.
"""

SECONDS_TO_LOOK_AGAIN = 0.1


def run_ahead(items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """
    Runs a generator in a thread, up to `DEPTH` items ahead, and yields its items. Its errors are
    raised here, in their turn; it is closed when this generator is.
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
    """Raised in a consumer that waits for an item when there was an error before it."""


def consume_behind(
    steps: Generator[Step, None, None],
    make: Callable[[Step], Item],
    consume: Callable[[Iterator[Item]], None],
    depth: int = DEPTH,
) -> None:
    """
    Makes an item of each step, and runs `consume(items)` in a thread behind. `steps` and `make` run
    in this thread; `steps` is closed in the end, and its next step is taken while items are still
    consumed. An error on either side ends both and is raised here, when both have ended.

    At most `depth` items wait or are consumed while one is made. With 0 `make` and `consume` take
    turns.
    """
    queue: "SimpleQueue[Any]" = SimpleQueue()
    nothing, end = object(), object()
    # A `SimpleQueue` can't be left half done by Ctrl-C, as a semaphore can.
    room: "SimpleQueue[None]" = SimpleQueue()
    for _ in range(depth + 1):
        room.put(None)
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
                # The item's memory must be free before there is room for the next one.
                del item
                room.put(None)

    thread = _started_thread()
    try:
        consumed = thread.submit(consume, received())
        # Wakes this thread where it waits for room and nobody takes any more items.
        consumed.add_done_callback(lambda _: room.put(None))
        for step in steps:
            while not consumed.done():
                with suppress(Empty):
                    room.get(timeout=SECONDS_TO_LOOK_AGAIN)
                    break
            if consumed.done():
                break
            queue.put(make(step))
        queue.put(end)
        is_whole = True
    finally:
        # No statement where another Ctrl-C could strike comes before this one.
        is_abandoned = not is_whole
        try:
            steps.close()
        finally:
            _wait_for(thread)
    consumed.result()


def _started_thread() -> ThreadPoolExecutor:
    """
    Returns an executor whose one thread runs already. An executor that starts its thread when work
    comes forgets the thread, and doesn't wait for it, if Ctrl-C comes in that moment.
    """
    thread = ThreadPoolExecutor(1)
    thread.submit(int).result()
    return thread


def _wait_for(thread: ThreadPoolExecutor) -> None:
    """
    Waits until a thread has ended its work, and raises Ctrl-C only after that: the caller would
    otherwise close files that the thread writes to.
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


SENTENCES_A_PART = 2**15
"""Joining needs time, and memory for the keys of one part: a shorter export has a single part."""


class PartEnd(NamedTuple):
    """
    The end of a part: `stop` is the number of the sentence after its last; `state` is the state
    that the next sentence starts from, where states are carried. With `is_last` the export is
    interrupted, and no part follows.
    """

    stop: int
    state: Optional[State]
    is_last: bool = False


class EmbeddedBatch(NamedTuple):
    """
    Sentences in any order, and their layers, shape `(layers, batch, tokens, width)`. `end` is given
    if a part can be finished after the batch.
    """

    sentences: Batch
    layers: torch.Tensor
    end: Optional[PartEnd]


class SpelledStep(NamedTuple):
    """
    Rows of a batch as ids for the biLM, in any order. `first_row` is the number of the first row in
    its batch. `stop` is given if, with these, the ids of all sentences before that number are made.
    """

    sentences: Batch
    spelled: IndexedBatch
    first_row: int
    stop: Optional[int]


def spelled_steps(
    text: InputText, span: Span, layers: SentenceLayers, settings: ExportSettings
) -> Generator[SpelledStep, None, None]:
    """Reads a span of a text and makes the ids of its words."""
    is_carried = layers.state == "carry"
    stop = span.start
    for block in blocks_of_batches(text.sentences(*span), settings, is_carried):
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


class StepEmbedder:
    """
    Embeds the steps of a span, one after the other. `layers` is in the state that the first
    sentence starts from. A part ends at the first chance after `seconds_a_part` seconds or
    `SENTENCES_A_PART` sentences, after an interruption, and at the end.
    """

    def __init__(
        self,
        span: Span,
        layers: SentenceLayers,
        seconds_a_part: float,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._stop = span.stop
        self._layers = layers
        self._seconds_a_part = seconds_a_part
        self._is_interrupted = is_interrupted
        self._has_ended = False
        self._part_start, self._part_started = span.start, time.monotonic()

    def __call__(self, step: SpelledStep) -> EmbeddedBatch:
        layers = self._layers
        output = layers.read(step.spelled, step.first_row)
        end: Optional[PartEnd] = None
        if step.stop is not None:
            is_late = time.monotonic() - self._part_started >= self._seconds_a_part
            is_full = step.stop - self._part_start >= SENTENCES_A_PART
            self._has_ended = self._is_interrupted()
            if is_late or is_full or self._has_ended or step.stop == self._stop:
                state = layers.carried() if layers.state == "carry" else None
                end = PartEnd(step.stop, state, self._has_ended)
                self._part_start, self._part_started = step.stop, time.monotonic()
        return EmbeddedBatch(step.sentences, output, end)

    def until_interrupted(
        self, steps: Generator[SpelledStep, None, None]
    ) -> Generator[SpelledStep, None, None]:
        """Yields the steps to embed: up to the one that ends a part after an interruption."""
        try:
            for step in steps:
                yield step
                if self._has_ended:
                    return
        finally:
            steps.close()
