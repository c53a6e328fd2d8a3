"""The signal that ends this process from outside."""


class Terminated(KeyboardInterrupt):
    """
    A signal from outside, such as SIGTERM, by its `number`. Unlike AllenNLP's `SigTermReceived` it
    is no `Exception`, because code that reads files takes those for signs of a damaged file.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
