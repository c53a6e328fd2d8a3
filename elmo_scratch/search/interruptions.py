"""Signals that end what trains, with all its processes."""

import signal
from contextlib import contextmanager
from typing import Any, Iterator

from elmo_scratch.files.signals import Terminated

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""Ctrl-C, `kill`, and a terminal that is closed, which Windows doesn't tell."""


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """
    Lets each of the signals that is not ignored interrupt the block, and so end its trainings.

    # Raises

    KeyboardInterrupt
        Where a signal comes; `Terminated` where it is not that of Ctrl-C.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # as `nohup` does
            signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(number: int, _: Any) -> None:
    """Interrupts, and lets no further signal interrupt while the trainings are being ended."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)
