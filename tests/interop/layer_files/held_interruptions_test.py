import signal
import threading
from typing import Any, Iterator, List

import pytest

from elmo_scratch.interop.layer_files.hdf5 import SIGNALS, interruptions_held


class Ended(BaseException):
    """What a handler raises."""


@pytest.fixture(params=SIGNALS)
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal whose handler raises an error."""

    def end(*_: Any) -> None:
        raise Ended

    before = signal.signal(request.param, end)
    yield request.param
    signal.signal(request.param, before)


def unexpected(error: BaseException) -> None:
    raise AssertionError(error)


def called(number: signal.Signals) -> str:
    """What a library calls."""
    deeper(number)
    return "done"


def deeper(number: signal.Signals) -> None:
    signal.raise_signal(number)


def test_what_a_library_calls_goes_on(number: signal.Signals) -> None:
    held: List[BaseException] = []
    with interruptions_held([called.__code__], held.append):
        assert called(number) == "done"
    assert [type(error) for error in held] == [Ended]


def test_elsewhere_a_handler_raises_as_ever(number: signal.Signals) -> None:
    held: List[BaseException] = []
    with pytest.raises(Ended), interruptions_held([called.__code__], held.append):
        deeper(number)
    with pytest.raises(Ended):
        called(number)
    assert held == []


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_python_has_no_hand_in_stays(handler: signal.Handlers) -> None:
    before = signal.signal(signal.SIGTERM, handler)
    try:
        with interruptions_held([], unexpected):
            assert signal.getsignal(signal.SIGTERM) == handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_nothing_is_to_be_done(number: signal.Signals) -> None:
    handlers: List[Any] = []

    def work() -> None:
        with interruptions_held([], unexpected):
            handlers.append(signal.getsignal(number))

    before = signal.getsignal(number)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before]
