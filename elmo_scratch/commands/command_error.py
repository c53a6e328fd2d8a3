"""How a command ends that can't do what it was asked for."""

from contextlib import contextmanager
from typing import Iterator

from allennlp.common.checks import ConfigurationError


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
def command_errors(command: str, output: str, after_os_error: str = "") -> Iterator[None]:
    """
    Turns what the command line, a file or the disk causes in the block into a `CommandError`.

    # Parameters

    command : `str`
        The name of the command.
    output : `str`
        What it writes: an error of the system is named after it.
    after_os_error : `str`, optional (default = `""`)
        The way out of an error of the system.
    """
    try:
        yield
    except ConfigurationError as error:
        raise CommandError(command, error.message) from None
    except OSError as error:
        raise CommandError(command, f"{output}: {error}{after_os_error}") from None
