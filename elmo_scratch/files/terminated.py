"""How a signal from outside ends what runs."""


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
