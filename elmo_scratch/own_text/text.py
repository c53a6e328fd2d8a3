"""Measures a text, and holds a part of it out for validation."""

from contextlib import ExitStack
from pathlib import Path
from typing import List, NamedTuple, Sequence

from allennlp.common import Tqdm
from allennlp.common.checks import ConfigurationError

from elmo_scratch.data.lines import split_lines

FEWEST_TOKENS, FEWEST_SENTENCES = 2000, 20
"""A smaller text teaches a biLM nothing, and what is held out of it measures nothing."""

HELD_SHARE, MOST_HELD = 1 / 20, 20_000
"""The share of the sentences that is held out, and how many at the most."""

END_MARKS = tuple(".,;:!?…。、，؟।")

RAW_SHARE = 0.03
"""
From this share of words that end in a mark on, tokens aren't cut: "word," is no word. In English
news it is 12 %, and below 1 % once it is cut, where "Mr." is left.
"""


class TextSize(NamedTuple):
    """
    # Parameters

    sentences : `List[int]`
        Of each file: its lines that aren't blank.
    tokens : `int`
        The words between white space of all files.
    raw_share : `float`
        The share of the words that end in a punctuation mark.
    """

    sentences: List[int]
    tokens: int
    raw_share: float

    @property
    def num_sentences(self) -> int:
        """The sentences of all files together."""
        return sum(self.sentences)

    @property
    def held_share(self) -> float:
        """The share of the sentences to hold out: a twentieth, or less of a large text."""
        return min(HELD_SHARE, MOST_HELD / self.num_sentences)

    @property
    def is_raw(self) -> bool:
        """Whether punctuation marks seem to stand at words, and not between white space."""
        return self.raw_share >= RAW_SHARE


def measure(files: Sequence[Path]) -> TextSize:
    """
    Reads a text once.

    # Parameters

    files : `Sequence[Path]`
        One sentence a line, plain or compressed as all texts may be.

    # Raises

    ConfigurationError
        If a file can't be read or holds no word.
    """
    sentences: List[int] = []
    tokens = marked = 0
    with Tqdm.tqdm(desc="measuring", unit=" sentences") as progress:
        for file in files:
            sentences.append(0)
            for words in split_lines(file):
                sentences[-1] += 1
                tokens += len(words)
                marked += sum(len(word) > 1 and word.endswith(END_MARKS) for word in words)
                progress.update()
    return TextSize(sentences, tokens, marked / tokens)


def check_size(size: TextSize, name: str) -> None:
    """Raises `ConfigurationError` if the text `name` is too small to be trained on."""
    if size.tokens < FEWEST_TOKENS:
        raise ConfigurationError(
            f"{name}: expected a text of at least {FEWEST_TOKENS:,} words, got {size.tokens:,}. "
            "Give more text, or go on from a trained biLM by training_config/bilm/fine_tune.jsonnet"
        )
    if size.num_sentences < FEWEST_SENTENCES:
        raise ConfigurationError(
            f"{name}: expected one sentence a line, but the text has {size.tokens:,} words in "
            f"{size.num_sentences} lines"
        )


def hold_out(files: Sequence[Path], size: TextSize, train: Path, dev: Path) -> None:
    """
    Writes the end of each file, `size.held_share` of its sentences and at least one, to `dev`, and
    what comes before to `train`. Neighbours in a text share words and names, so that sentences
    drawn at random would flatter.

    # Parameters

    files : `Sequence[Path]`
        The files of the text.
    size : `TextSize`
        What `measure` has found in them.
    train, dev : `Path`
        The files to write, one sentence a line.

    # Raises

    ConfigurationError
        If a file can't be read, or has changed since it was measured.
    """
    with ExitStack() as stack:
        parts = [
            stack.enter_context(open(path, "w", encoding="utf-8", newline="\n"))
            for path in (train, dev)
        ]
        progress = stack.enter_context(
            Tqdm.tqdm(desc="holding out", total=size.num_sentences, unit=" sentences")
        )
        for file, num_sentences in zip(files, size.sentences, strict=True):
            last_trained = num_sentences - max(1, round(num_sentences * size.held_share))
            number = 0
            for number, words in enumerate(split_lines(file), start=1):
                parts[number > last_trained].write(" ".join(words) + "\n")
                progress.update()
            if number != num_sentences:
                raise ConfigurationError(
                    f"{file}: expected {num_sentences:,} sentences, as when it was measured, got "
                    f"{number:,}. Let it be written to its end first."
                )
