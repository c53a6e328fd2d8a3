import signal
from typing import Iterator

import pytest

from elmo_scratch.files.signals import Terminated
from elmo_scratch.search.tasks import SIGNALS, interrupted_by_signals


@pytest.fixture(autouse=True)
def usual_signals() -> Iterator[None]:
    """Whatever the process that runs the tests ignores."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def interrupted_by(number: int) -> KeyboardInterrupt:
    """What a signal raises in the block, which gets the other ones while it ends."""
    with pytest.raises(KeyboardInterrupt) as raised, interrupted_by_signals():
        try:
            signal.raise_signal(number)
        finally:
            for other in SIGNALS:
                signal.raise_signal(other)
    return raised.value


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_block_and_none_the_ending(number: signal.Signals) -> None:
    error = interrupted_by(number)
    assert isinstance(error, Terminated)
    assert error.number == number
    assert all(signal.getsignal(other) == signal.SIG_DFL for other in SIGNALS)


def test_that_of_a_keyboard_is_told_from_the_others() -> None:
    assert type(interrupted_by(signal.SIGINT)) is KeyboardInterrupt


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    with interrupted_by_signals():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
