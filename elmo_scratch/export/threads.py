"""Work that runs ahead of what uses it, in a thread of its own."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Deque, Generator, TypeVar

Item = TypeVar("Item")

DEPTH = 2
"""
How many items wait between two threads. What waits takes memory; more than keeps both sides busy is
of no use.
"""


def run_ahead(items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """
    Yields the items of a generator that runs up to `DEPTH` of them ahead, in a thread. What it
    raises is raised here, in its turn; it is closed when this one is.
    """
    end = object()
    waiting: Deque["Future[Any]"] = deque()
    thread = ThreadPoolExecutor(1)
    try:
        while True:
            while len(waiting) < DEPTH:
                waiting.append(thread.submit(next, items, end))
            item = waiting.popleft().result()
            if item is end:
                return
            yield item
    finally:
        thread.shutdown(wait=True, cancel_futures=True)
        items.close()
