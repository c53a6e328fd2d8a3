"""How a command ends that can't do what it was asked for."""

import signal
import sys
import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List

from allennlp.common.checks import ConfigurationError

from elmo_scratch.files.signals import Terminated


class CommandError(ConfigurationError, SystemExit):
    """
    One line on stderr and exit status 1 where nothing catches it; a `ConfigurationError` where
    Python code runs the command.

    # Parameters

    command : `str`
        The name of the command.
    message : `str`
        What was expected, what came, and the way out.
    """

    def __init__(self, command: str, message: object) -> None:
        super().__init__(f"allennlp {command}: error: {message}")
        self.code = self.message


@contextmanager
def command_errors(
    command: str, output: str, way_on: str = "", is_kept: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """
    Turns what the command line, a file or the disk causes in the block into a `CommandError`, and
    an interruption into one line.

    # Parameters

    command : `str`
        The name of the command.
    output : `str`
        What it writes: an error of the system is named after it.
    way_on : `str`, optional (default = `""`)
        How to go on after an interruption or an error of the system, where what is done is kept.
    is_kept : `Callable[[], bool]`, optional (default = always)
        Whether there is something to go on with after an error of the system.

    # Raises

    CommandError
    SystemExit
        If the command is interrupted, with status 130, or ended by another signal, with 128 and
        its number.
    """
    numbers: List[int] = []
    try:
        with _terminated_by_signal(numbers):
            yield
    except ConfigurationError as error:
        raise CommandError(command, error.message) from None
    except OSError as error:
        kept = f". What is done is kept: {way_on}" if way_on and is_kept() else ""
        raise CommandError(command, f"{output}: {error}{kept}") from None
    except KeyboardInterrupt as error:
        then = f"; {way_on}" if way_on else ""
        print(f"allennlp {command}: interrupted{then}", file=sys.stderr)
        if isinstance(error, Terminated):
            numbers.append(error.number)
        # Ray raises an interruption of its own in place of the one that comes while it waits.
        number = numbers[0] if numbers else signal.SIGINT
        raise SystemExit(128 + number) from None


@contextmanager
def _terminated_by_signal(numbers: List[int]) -> Iterator[None]:
    """Notes it and raises `Terminated` where SIGTERM comes in the block, and is not ignored."""
    before = signal.getsignal(signal.SIGTERM)
    if before == signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, _: Any) -> None:
        numbers.append(number)
        raise Terminated(number)

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
