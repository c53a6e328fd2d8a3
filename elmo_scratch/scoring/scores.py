"""
What a language model says of a sentence, of a text, and of the words that would fit: as objects, as
JSON for programs, and as a table for people.
"""

import json
import textwrap
from itertools import accumulate
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Type

import torch
from allennlp.common.checks import ConfigurationError

from elmo_scratch.alphabet import BEGIN_SENTENCE_WORD, END_SENTENCE_WORD
from elmo_scratch.data.streams import NumberedSentence
from elmo_scratch.kernels import TopScores, top_scores
from elmo_scratch.metrics import Perplexity
from elmo_scratch.modules import OutputSoftmax
from elmo_scratch.terminal import clipped, counted, printable, result_lines, text_width


class LikelyWord(NamedTuple):
    """A word that may stand in the place of another, and its probability there."""

    word: str
    probability: float


class SentenceScore(NamedTuple):
    """
    The score of one sentence. All log probabilities are natural.

    # Parameters

    number : `int`
        Which sentence of the text it is, from 0. Lines without a token don't count.
    words : `List[str]`
        Its words as they are written.
    unknown : `List[int]`
        The places, from 0, of the words that the vocabulary lacks. Each counts as the one unknown
        word of the vocabulary, so its log probability is that of any unknown word.
    left_to_right : `List[float]`
        The log probability of each word, given those before it; and that of the end.
    right_to_left : `List[float]`
        The log probability of the beginning, and that of each word, given those after it.
    likely : `List[List[LikelyWord]]`
        For each word the most likely ones at its place, best first; none if none were asked for.
        Both directions count: a word's probability is the product of the two, over the sum of these
        products of all words of the vocabulary. The unknown word and the sentence marks are none.
    """

    number: int
    words: List[str]
    unknown: List[int]
    left_to_right: List[float]
    right_to_left: List[float]
    likely: List[List[LikelyWord]]

    def perplexities(self) -> Dict[str, float]:
        """The perplexities of the sentence, as `TextScore.perplexities` has them for a text."""
        total = TextScore()
        total.add(self)
        return total.perplexities()


class TextScore:
    """
    The sums over the sentences of a text. The attributes tell how many sentences, words and words
    out of vocabulary it has.
    """

    def __init__(self) -> None:
        self.num_sentences = self.num_words = self.num_unknown = 0
        self._sums = [0.0, 0.0]

    def add(self, score: SentenceScore) -> None:
        """Adds a sentence."""
        self.num_sentences += 1
        self.num_words += len(score.words)
        self.num_unknown += len(score.unknown)
        for direction, found in enumerate((score.left_to_right, score.right_to_left)):
            self._sums[direction] -= sum(found)

    def perplexities(self) -> Dict[str, float]:
        """
        Returns `perplexity`, `perplexity_left_to_right` and `perplexity_right_to_left`, the metrics
        of `allennlp evaluate`: per word and sentence mark, the former by the mean of both losses.
        """
        num_predicted = max(1, self.num_words + self.num_sentences)
        losses = [total / num_predicted for total in self._sums]
        return {
            "perplexity": Perplexity.of_loss(sum(losses) / 2),
            "perplexity_left_to_right": Perplexity.of_loss(losses[0]),
            "perplexity_right_to_left": Perplexity.of_loss(losses[1]),
        }


def score_from_json(record: Dict[str, Any]) -> SentenceScore:
    """The score whose `_asdict()` was written as JSON."""
    likely = [[LikelyWord(*word) for word in words] for words in record.pop("likely")]
    return SentenceScore(**record, likely=likely)


CHUNK_SIZE = 2**22
"""Log probabilities of a chunk and a direction: 16 MiB in float32, a few times over."""


def likely_words(
    softmax: OutputSoftmax,
    left_to_right: torch.Tensor,
    right_to_left: torch.Tensor,
    count: int,
    *,
    num_words: int,
    excluded: Sequence[int],
) -> TopScores:
    """
    Finds the most likely words at places between two states.

    The two directions share no state, so they are combined as if what stands before a place and
    what stands after it were independent given the word: the log probabilities of both are added,
    and renormalised over all words that are not excluded. (By Bayes' rule one would also divide by
    how frequent the word is at all, which the model doesn't tell.)

    # Parameters

    softmax : `OutputSoftmax`
        In evaluation mode.
    left_to_right, right_to_left : `torch.Tensor`
        Shape `(places, dim)`: the states before and after each place.
    count : `int`
        How many words are wanted at a place.
    num_words : `int`
        The size of the vocabulary.
    excluded : `Sequence[int]`
        Ids that stand for no word: padding, the marks of sentence boundaries, the unknown word.

    # Returns

    `TopScores`
        Shape `(places, count)`, or fewer columns with fewer words: the log probabilities and the
        ids, most likely first.

    # Raises

    ConfigurationError
        If the softmax has no `log_probabilities`.
    """
    wanted = min(count, num_words - len(excluded))
    rows = max(1, CHUNK_SIZE // num_words)
    values = left_to_right.new_empty(len(left_to_right), wanted)
    indices = torch.empty_like(values, dtype=torch.long)
    try:
        for first in range(0, len(values), rows):
            some = slice(first, first + rows)
            joint = softmax.log_probabilities(left_to_right[some])  # (rows, words)
            joint = joint + softmax.log_probabilities(right_to_left[some])
            joint[:, list(excluded)] = -torch.inf
            top = top_scores(torch.log_softmax(joint, dim=1), wanted)
            values[some], indices[some] = top.values, top.indices
    except NotImplementedError:
        raise ConfigurationError(
            f"the softmax {type(softmax).__name__} lists no likely words: it has no method "
            "`log_probabilities`. Leave --top (`top`) out."
        ) from None
    return TopScores(values, indices)


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


COLUMNS = 80

WORD_COLUMNS, NUMBER_COLUMNS = 24, 15

UNKNOWN = "?"
"""Marks a word that the vocabulary lacks."""


def sentence_record(score: SentenceScore) -> Dict[str, object]:
    """
    Returns a sentence for JSON: the fields of `SentenceScore`, with `likely` only where words were
    found, and its perplexities.
    """
    record = {**score._asdict(), **score.perplexities()}
    if not score.likely:
        del record["likely"]
    return record


def json_lines(score: SentenceScore) -> List[str]:
    """The line of a sentence: `sentence_record` as JSON."""
    return [json.dumps(sentence_record(score), ensure_ascii=False)]


def json_total(total: TextScore) -> List[str]:
    """The line of a text: an object `text` with its counts and its perplexities."""
    counts = {
        "sentences": total.num_sentences,
        "words": total.num_words,
        "unknown": total.num_unknown,
    }
    return [json.dumps({"text": {**counts, **total.perplexities()}})]


def table_lines(score: SentenceScore) -> List[str]:
    """
    The lines of a sentence: its perplexities, then a line for each word and mark with the log
    probability in each direction, `?` before a word that the vocabulary lacks, and the likely words
    below it.
    """
    found = score.perplexities()
    lines = [
        f"sentence {score.number}  perplexity {found['perplexity']:.1f}: left to right "
        f"{found['perplexity_left_to_right']:.1f}, right to left "
        f"{found['perplexity_right_to_left']:.1f}",
        _row("", "", "left to right", "right to left"),
        _row("  ", BEGIN_SENTENCE_WORD, "", _number(score.right_to_left[0])),
    ]
    unknown = set(score.unknown)
    for place, word in enumerate(score.words):
        mark = f"{UNKNOWN} " if place in unknown else "  "
        before, after = score.left_to_right[place], score.right_to_left[place + 1]
        lines.append(_row(mark, word, _number(before), _number(after)))
        if score.likely:
            lines += _likely(score.likely[place])
    return [*lines, _row("  ", END_SENTENCE_WORD, _number(score.left_to_right[-1]), ""), ""]


def table_total(total: TextScore) -> List[str]:
    """The lines of a text: its counts and its perplexities, told as `allennlp evaluate` does."""
    share = total.num_unknown / max(1, total.num_words)
    return [
        f"{counted(total.num_sentences, 'sentence')}, {counted(total.num_words, 'word')}",
        f"{counted(total.num_unknown, 'word')} ({share:.1%}) out of vocabulary ({UNKNOWN})",
        *result_lines(total.perplexities()),
    ]


def _row(mark: str, word: str, before: str, after: str) -> str:
    shown = clipped(f"{mark}{printable(word)}", WORD_COLUMNS)
    padding = " " * (WORD_COLUMNS - text_width(shown))
    return f"{shown}{padding}{before:>{NUMBER_COLUMNS}}{after:>{NUMBER_COLUMNS}}".rstrip()


def _number(log_probability: float) -> str:
    shown = f"{log_probability:.2f}"
    return "0.00" if shown == "-0.00" else shown


def _likely(words: List[LikelyWord]) -> Iterator[str]:
    # A name and its number stay together; no comma stands between, which is a likely word itself.
    told = "  ".join(f"{printable(word)}\xa0{share:.1%}" for word, share in words)
    for line in textwrap.wrap(told, COLUMNS - 6, break_on_hyphens=False, break_long_words=False):
        yield " " * 6 + line.replace("\xa0", " ")
