"""The scores of parallel streams of text: predicted by windows, put together by sentences."""

import json
from itertools import accumulate
from tempfile import TemporaryFile
from types import TracebackType
from typing import Iterator, List, NamedTuple, Optional, Sequence, Type

import torch

from elmo_scratch.data.streams import NumberedSentence
from elmo_scratch.scoring.scores import SentenceScore, score_from_json


class Predicted(NamedTuple):
    """
    Predictions of one direction: their `losses` in nats, the ids of their `targets`, and the
    `states` that predict them, shape `(predicted, dim)`, or `(predicted, 0)` if nobody wants them.
    """

    losses: List[float]
    targets: List[int]
    states: torch.Tensor

    def split(self, sizes: Sequence[int]) -> "List[Predicted]":
        """Parts of these sizes, in order."""
        ends = list(accumulate(sizes))
        return [
            Predicted(self.losses[end - size : end], self.targets[end - size : end], states)
            for size, end, states in zip(sizes, ends, self.states.split(list(sizes)))
        ]

    def flipped(self) -> "Predicted":
        """The same predictions in the opposite order."""
        return Predicted(self.losses[::-1], self.targets[::-1], self.states.flip(0))


class PredictedSentence(NamedTuple):
    """
    A sentence and its predictions in the order of its words: left to right of each word and the
    end, right to left of the beginning and each word.
    """

    number: int
    words: List[str]
    left_to_right: Predicted
    right_to_left: Predicted


class SentenceAssembly:
    """
    Puts the predictions of one stream, which come window by window, together to sentences: both
    directions read one sentence after the other, each in its own order.
    """

    def __init__(self, sentences: Iterator[NumberedSentence]) -> None:
        self._sentences = sentences
        self._current = next(sentences, None)
        self._left_to_right, self._right_to_left = _Direction(), _Direction()

    def add(self, left_to_right: Predicted, right_to_left: Predicted) -> List[PredictedSentence]:
        """Takes a window's predictions, and returns the sentences that are whole with them."""
        self._left_to_right.add(left_to_right)
        self._right_to_left.add(right_to_left)
        found: List[PredictedSentence] = []
        while self._current is not None:
            number, words = self._current
            size = len(words) + 1
            if min(self._left_to_right.size, self._right_to_left.size) < size:
                break
            first, second = self._left_to_right.take(size), self._right_to_left.take(size)
            found.append(PredictedSentence(number, words, first, second.flipped()))
            self._current = next(self._sentences, None)
        return found


class _Direction:
    """What one direction has predicted beyond the last whole sentence."""

    def __init__(self) -> None:
        self._parts: List[Predicted] = []
        self.size = 0

    def add(self, part: Predicted) -> None:
        """Puts predictions behind the others."""
        self._parts.append(part)
        self.size += len(part.losses)

    def take(self, size: int) -> Predicted:
        """Returns the first predictions, and forgets them."""
        whole = Predicted(
            [loss for part in self._parts for loss in part.losses],
            [target for part in self._parts for target in part.targets],
            torch.cat([part.states for part in self._parts]),
        )
        first, rest = whole.split([size, self.size - size])
        self._parts, self.size = [rest], self.size - size
        return first


class ScoreFile:
    """
    Keeps scores on the disk, in order: those of later streams, until all that comes before them in
    the text is known. A context in which the file exists.
    """

    def __enter__(self) -> "ScoreFile":
        self._file = TemporaryFile("w+", encoding="utf-8")
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self._file.close()

    def add(self, score: SentenceScore) -> None:
        """Writes a score behind the others."""
        self._file.write(json.dumps(score._asdict()) + "\n")

    def scores(self) -> Iterator[SentenceScore]:
        """Yields all scores; no more can be added."""
        self._file.seek(0)
        for line in self._file:
            yield score_from_json(json.loads(line))
