"""What does the work of an export."""

from abc import ABC, abstractmethod
from typing import Callable, List

from elmo_scratch.embedders import SentenceLayers
from elmo_scratch.export.part_folder import Span
from elmo_scratch.export.part_writing import PartWriting

SECONDS_A_PART = 300.0
"""
What an interruption costs at most, about. A shorter export has one part, which becomes the output
as it is; the parts of a longer one are copied at the end.
"""


class Engine(ABC):
    """
    Writes the parts of an export. Abstract.
    """

    follows_the_text = False
    """Whether every sentence is read after all before it, as carried states need."""

    @abstractmethod
    def write(
        self,
        writing: PartWriting,
        missing: List[Span],
        layers: SentenceLayers,
        done: Callable[[int], None],
    ) -> None:
        """
        # Parameters

        writing : `PartWriting`
            Writes the parts of a span.
        missing : `List[Span]`
            The spans to write.
        layers : `SentenceLayers`
            The biLM, in this process.
        done : `Callable[[int], None]`
            Is told how many more sentences have been written.

        # Raises

        ConfigurationError
            As `PartWriting.write`, or if what does the work is not to be had.
        OSError
            If the disk is full.
        """


class OneProcess(Engine):
    """
    Does everything in this process.

    # Parameters

    seconds_a_part : `float`, optional (default = `SECONDS_A_PART`)
        A part ends at the first chance after so many seconds.
    """

    follows_the_text = True

    def __init__(self, seconds_a_part: float = SECONDS_A_PART) -> None:
        self._seconds_a_part = seconds_a_part

    def write(
        self,
        writing: PartWriting,
        missing: List[Span],
        layers: SentenceLayers,
        done: Callable[[int], None],
    ) -> None:
        """
        One span after the other.

        # Raises

        As `PartWriting.write`.
        """
        for span in missing:
            writing.write(span, layers, done, self._seconds_a_part)
