"""How a command ends that can't do what it was asked for."""

import sys
from contextlib import contextmanager
from typing import Iterator

from allennlp.common.checks import ConfigurationError
from allennlp.common.util import SigTermReceived


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
def command_errors(command: str, output: str, way_on: str = "") -> Iterator[None]:
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

    # Raises

    CommandError
    SystemExit
        With status 130 or 143, if the command is interrupted or ended from outside.
    """
    try:
        yield
    except ConfigurationError as error:
        raise CommandError(command, error.message) from None
    except OSError as error:
        kept = f". What is done is kept: {way_on}" if way_on else ""
        raise CommandError(command, f"{output}: {error}{kept}") from None
    except (KeyboardInterrupt, SigTermReceived) as error:
        then = f"; {way_on}" if way_on else ""
        print(f"allennlp {command}: interrupted{then}", file=sys.stderr)
        raise SystemExit(130 if isinstance(error, KeyboardInterrupt) else 143) from None
