"""
Work beside the tensor work: what comes before it can run ahead, what comes after it behind, each in
a thread of its own. The tensor work stays in the thread that calls: in another one PyTorch takes
nearly twice as long on processors, because memory that is let go of there is not kept for the next
operation.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, Callable, Deque, Generator, Iterator, Optional, TypeVar

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
