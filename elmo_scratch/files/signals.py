"""Signals that end this process, from outside or by Ctrl-C."""

import signal
import sys
import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator


class Terminated(KeyboardInterrupt):
    """
    A signal from outside, such as SIGTERM, by its `number`. Unlike AllenNLP's `SigTermReceived` it
    is no `Exception`, because code that reads files takes those for signs of a damaged file.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def first_interruption_waits(told: str) -> Iterator[Callable[[], bool]]:
    """
    Lets the block end its work at a good moment: the first Ctrl-C prints `told` on stderr and makes
    the function true that the block gets; the block then raises `KeyboardInterrupt` itself. A
    second Ctrl-C raises it at once.

    Where Ctrl-C is ignored or means something else, and outside the main thread, nothing changes.
    """
    has_come = threading.Event()

    def wait(*_: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        has_come.set()
        print(told, file=sys.stderr)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield has_come.is_set
        return
    signal.signal(signal.SIGINT, wait)
    try:
        yield has_come.is_set
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
