"""Signals: ends of this process by them, and interruptions deferred while C code calls Python."""

import signal
import threading
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Any, Callable, Container, Iterator, Optional

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptions_held(
    called: Container[CodeType], hold: Callable[[BaseException], None]
) -> Iterator[None]:
    """
    For the block, no signal raises anything in a function that a C library calls. Python runs the
    handler of a signal before the next step of Python, and where a library takes all the time that
    is the first step of such a function, which no `try` of its own encloses. The library would take
    it for an error of that function.

    # Parameters

    called : `Container[CodeType]`
        The code of these functions.
    hold : `Callable[[BaseException], None]`
        Is given what a handler raises there. Elsewhere it is raised as ever.
    """
    with ExitStack() as handlers:
        if threading.current_thread() is threading.main_thread():  # No other one gets signals.
            for number in SIGNALS:
                handlers.enter_context(_held(number, called, hold))
        yield


@contextmanager
def _held(
    number: signal.Signals, called: Container[CodeType], hold: Callable[[BaseException], None]
) -> Iterator[None]:
    """For one signal."""
    before: Any = signal.getsignal(number)
    if not callable(before):  # It is ignored, or ends the process.
        yield
        return

    def handle(number: int, frame: Optional[FrameType]) -> None:
        try:
            before(number, frame)
        except BaseException as error:
            if not _is_within(frame, called):
                raise
            hold(error)

    signal.signal(number, handle)
    try:
        yield
    finally:
        signal.signal(number, before)


def _is_within(frame: Optional[FrameType], called: Container[CodeType]) -> bool:
    """Whether one of these functions runs."""
    while frame is not None:
        if frame.f_code in called:
            return True
        frame = frame.f_back
    return False


class Terminated(KeyboardInterrupt):
    """
    A signal from outside, such as SIGTERM. Unlike AllenNLP's `SigTermReceived` it is no
    `Exception`: what reads files takes those for signs of a damaged file.

    # Parameters

    number : `int`
        Of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
