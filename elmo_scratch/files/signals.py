"""Handles signals: they end this process, or wait while a C library calls Python."""

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
    For the block, keeps signals from raising anything in a function that a C library calls, because
    the library would take it for an error of that function. Python runs the handler of a signal
    before its next step. If a library takes all the time, that is the first step of such a
    function, which no `try` inside the function encloses.

    # Parameters

    called : `Container[CodeType]`
        The code of these functions.
    hold : `Callable[[BaseException], None]`
        Receives the errors that a handler raises there. Elsewhere they are raised as usual.
    """
    with ExitStack() as handlers:
        if threading.current_thread() is threading.main_thread():  # Others get no signals.
            for number in SIGNALS:
                handlers.enter_context(_held(number, called, hold))
        yield


@contextmanager
def _held(
    number: signal.Signals, called: Container[CodeType], hold: Callable[[BaseException], None]
) -> Iterator[None]:
    """Does for one signal what `interruptions_held` does for all."""
    before: Any = signal.getsignal(number)
    if not callable(before):  # The signal is ignored, or ends the process.
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
    """Whether one of these functions is running."""
    while frame is not None:
        if frame.f_code in called:
            return True
        frame = frame.f_back
    return False


class Terminated(KeyboardInterrupt):
    """
    A signal from outside, such as SIGTERM, by its `number`. Unlike AllenNLP's `SigTermReceived` it
    is no `Exception`, because code that reads files takes those for signs of a damaged file.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
