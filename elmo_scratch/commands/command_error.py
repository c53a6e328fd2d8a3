"""How a command ends that can't do what it was asked for."""

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
